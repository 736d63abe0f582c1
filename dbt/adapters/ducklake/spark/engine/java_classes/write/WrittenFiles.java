package dbt.ducklake.write;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** The data files of writes in this process, until Python takes them. */
public final class WrittenFiles {
  private static final Map<String, String> BY_WRITE = new ConcurrentHashMap<>();

  private WrittenFiles() {}

  static void put(String writeId, String files) {
    BY_WRITE.put(writeId, files);
  }

  /** A line for each file: the folder that Spark names its partition by, a tab, and its path in the write's folder. */
  public static String take(String writeId) {
    return BY_WRITE.remove(writeId);
  }
}
