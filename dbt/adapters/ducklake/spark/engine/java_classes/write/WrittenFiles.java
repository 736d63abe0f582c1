package dbt.ducklake.write;

import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.RelationProvider;
import org.apache.spark.sql.types.StructType;

/**
 * The data files of the last writes, for the client that asked for them.
 *
 * <p>It is a source without rows. The name of its only column is the list: a client in another process can read a schema
 * without a job.
 */
public final class WrittenFiles implements RelationProvider {
  /** The option with the name of a write. */
  static final String WRITE_ID = "id";

  private static final int KEPT_WRITES = 1000;

  private static final Map<String, String> BY_WRITE = new LinkedHashMap<>() {
    private static final long serialVersionUID = 1;

    @Override
    protected boolean removeEldestEntry(Map.Entry<String, String> eldest) {
      return size() > KEPT_WRITES;
    }
  };

  /** A line for each file: the folder that Spark names its partition by, a tab, and its path in the write's folder. */
  static void put(String writeId, String files) {
    synchronized (BY_WRITE) {
      BY_WRITE.put(writeId, files);
    }
  }

  @Override
  public BaseRelation createRelation(
      SQLContext context, scala.collection.immutable.Map<String, String> options) {
    String files;
    synchronized (BY_WRITE) {
      files = BY_WRITE.get(options.apply(WRITE_ID));
    }
    if (files == null) {
      throw new IllegalStateException("no data files are known of the write " + options.apply(WRITE_ID));
    }
    return new BaseRelation() {
      @Override
      public SQLContext sqlContext() {
        return context;
      }

      @Override
      public StructType schema() {
        return new StructType().add(files, "string");
      }
    };
  }
}
