package dbt.ducklake.write;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.HashSet;
import java.util.Set;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.ChecksumFileSystem;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocatedFileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.hadoop.mapreduce.JobContext;
import org.apache.hadoop.mapreduce.OutputCommitter;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.spark.TaskContext;
import org.apache.spark.internal.io.FileCommitProtocol;
import org.apache.spark.internal.io.FileNameSpec;
import org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Spark's commit protocol for the data files of a lake: they are written where they stay.
 *
 * <p>Hadoop's committers write elsewhere and move files when a task, and again when the job, is done, so that readers of
 * a folder see all or nothing. On an object store a move is a copy. Readers of a lake see what the catalog names. So it
 * is enough to know which files the tasks that Spark took committed: each attempt of a task gives its files names of
 * their own, and the job lists those of the attempts that count.
 *
 * <p>Any write without the option {@link #WRITE_ID} goes as it always does.
 */
public final class DataFileCommitProtocol extends SQLHadoopMapReduceCommitProtocol {
  /** The option with the name of a write, under which {@link WrittenFiles} has its files. */
  static final String WRITE_ID = "ducklake.write.id";

  /** The option with the end of file names, in place of Spark's. */
  static final String NAME_END = "ducklake.write.name.end";

  private static final long serialVersionUID = 1;

  private final String folder;

  /** The lines of this attempt, on an executor. */
  private transient StringBuilder written;

  public DataFileCommitProtocol(String jobId, String folder, boolean dynamicPartitionOverwrite) {
    super(jobId, folder, dynamicPartitionOverwrite);
    this.folder = folder;
  }

  private static boolean isOfLake(JobContext context) {
    return context.getConfiguration().get(WRITE_ID) != null;
  }

  @Override
  public OutputCommitter setupCommitter(TaskAttemptContext context) {
    return isOfLake(context) ? new NothingToMove() : super.setupCommitter(context);
  }

  @Override
  public void setupTask(TaskAttemptContext context) {
    super.setupTask(context);
    written = new StringBuilder();
  }

  @Override
  public String newTaskTempFile(TaskAttemptContext context, Option<String> partition, FileNameSpec spec) {
    if (!isOfLake(context)) {
      return super.newTaskTempFile(context, partition, spec);
    }
    int task = context.getTaskAttemptID().getTaskID().getId();
    String end = context.getConfiguration().get(NAME_END, spec.suffix());
    String name = String.format("%spart-%05d-%s%s", spec.prefix(), task, UUID.randomUUID(), end);
    written.append(partition.isDefined() ? partition.get() : "").append('\t').append(name).append('\n');
    return new Path(folder, name).toString();
  }

  @Override
  public FileCommitProtocol.TaskCommitMessage commitTask(TaskAttemptContext context) {
    FileCommitProtocol.TaskCommitMessage message = super.commitTask(context);
    if (!isOfLake(context)) {
      return message;
    }
    try {
      for (String line : lines(written)) {
        deleteChecksum(context.getConfiguration(), pathOf(line));
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return new FileCommitProtocol.TaskCommitMessage(TaskContext.get().attemptNumber() + "\n" + written);
  }

  @Override
  public void abortTask(TaskAttemptContext context) {
    super.abortTask(context);
    if (isOfLake(context)) {
      for (String line : lines(written)) {
        try {
          Path path = pathOf(line);
          path.getFileSystem(context.getConfiguration()).delete(path, false);
        } catch (IOException e) {
          // The write's folder is removed if the job fails. Otherwise the file is an orphan, which clean-up finds.
          continue;
        }
      }
    }
  }

  @Override
  public void commitJob(JobContext context, Seq<FileCommitProtocol.TaskCommitMessage> messages) {
    if (!isOfLake(context)) {
      super.commitJob(context, messages);
      return;
    }
    StringBuilder all = new StringBuilder();
    boolean hasLostAttempts = false;
    for (FileCommitProtocol.TaskCommitMessage message : CollectionConverters.asJava(messages)) {
      String text = (String) message.obj();
      int end = text.indexOf('\n');
      hasLostAttempts |= !text.substring(0, end).equals("0");
      all.append(text.substring(end + 1));
    }
    Configuration conf = context.getConfiguration();
    try {
      if (hasLostAttempts) {
        deleteOthers(conf, lines(all));
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    WrittenFiles.put(conf.get(WRITE_ID), all.toString());
  }

  /** Deletes what attempts left that ended with their executor. Others have deleted their files. */
  private void deleteOthers(Configuration conf, String[] lines) throws IOException {
    FileSystem fileSystem = new Path(folder).getFileSystem(conf);
    Set<Path> written = new HashSet<>();
    for (String line : lines) {
      written.add(fileSystem.makeQualified(pathOf(line)));
    }
    RemoteIterator<LocatedFileStatus> found = fileSystem.listFiles(new Path(folder), true);
    while (found.hasNext()) {
      Path path = found.next().getPath();
      if (!written.contains(path)) {
        fileSystem.delete(path, false);
      }
    }
  }

  private static String[] lines(StringBuilder text) {
    return text.isEmpty() ? new String[0] : text.toString().split("\n");
  }

  private Path pathOf(String line) {
    return new Path(folder, line.substring(line.indexOf('\t') + 1));
  }

  /** Hadoop writes a checksum file beside each local file, which nothing but a reader of Hadoop's would know. */
  private static void deleteChecksum(Configuration conf, Path path) throws IOException {
    if (path.getFileSystem(conf) instanceof ChecksumFileSystem local) {
      local.getRawFileSystem().delete(local.getChecksumFile(path), false);
    }
  }

  /** Lets Spark's driver decide which attempt of a task counts, and does nothing then. */
  private static final class NothingToMove extends OutputCommitter {
    @Override
    public void setupJob(JobContext context) {}

    @Override
    public void setupTask(TaskAttemptContext context) {}

    @Override
    public boolean needsTaskCommit(TaskAttemptContext context) {
      return true;
    }

    @Override
    public void commitTask(TaskAttemptContext context) {}

    @Override
    public void abortTask(TaskAttemptContext context) {}
  }
}
