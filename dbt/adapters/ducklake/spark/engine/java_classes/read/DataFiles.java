package dbt.ducklake.read;

import java.util.Arrays;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.SchemaRelationProvider;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.immutable.Map;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Spark's Parquet source for files whose sizes are known, as the catalog of a lake knows them.
 *
 * <p>Spark's own looks each path up, then lists it, before it plans. What it does with the files is the same.
 */
public final class DataFiles implements SchemaRelationProvider {
  /** The option with the files: for each a line with its size, a space and its path. */
  static final String FILES = "files";

  private static final long BLOCK_SIZE = 128L << 20;

  @Override
  public BaseRelation createRelation(SQLContext context, Map<String, String> options, StructType schema) {
    FileStatus[] files = options.apply(FILES).lines().map(DataFiles::status).toArray(FileStatus[]::new);
    return new HadoopFsRelation(
        new Index(files),
        new StructType(),
        schema.asNullable(),
        Option.empty(),
        new ParquetFileFormat(),
        Map$.MODULE$.empty(),
        context.sparkSession());
  }

  private static FileStatus status(String line) {
    int space = line.indexOf(' ');
    Path path = new Path(line.substring(space + 1));
    return new FileStatus(Long.parseLong(line.substring(0, space)), false, 1, BLOCK_SIZE, 0, path);
  }

  /** The files, in one partition without values. */
  private static final class Index implements FileIndex {
    private final FileStatus[] files;

    Index(FileStatus[] files) {
      this.files = files;
    }

    @Override
    public Seq<Path> rootPaths() {
      return CollectionConverters.asScala(Arrays.stream(files).map(FileStatus::getPath).toList()).toSeq();
    }

    @Override
    public Seq<PartitionDirectory> listFiles(Seq<Expression> partitionFilters, Seq<Expression> dataFilters) {
      PartitionDirectory all = PartitionDirectory.apply(InternalRow.empty(), files);
      return CollectionConverters.asScala(java.util.List.of(all)).toSeq();
    }

    @Override
    public String[] inputFiles() {
      return Arrays.stream(files).map(file -> file.getPath().toUri().toString()).toArray(String[]::new);
    }

    @Override
    public void refresh() {}

    @Override
    public long sizeInBytes() {
      return Arrays.stream(files).mapToLong(FileStatus::getLen).sum();
    }

    @Override
    public StructType partitionSchema() {
      return new StructType();
    }

    /** Scans of the same files are the same work, which Spark then does once. */
    @Override
    public boolean equals(Object other) {
      return other instanceof Index index && Arrays.equals(files, index.files);
    }

    @Override
    public int hashCode() {
      return Arrays.hashCode(files);
    }
  }
}
