package dbt.ducklake.write;

import java.nio.charset.StandardCharsets;
import org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils;

/** The folder of a partition as writers of DuckLake name it, {@code region=EU%2Fx%20y/month=1}. */
final class PartitionFolder {
  private static final String NULL = "__HIVE_DEFAULT_PARTITION__";

  /** Stands before values that Spark would take for NULL, and those that begin with it. */
  private static final String ESCAPE = "~";

  private static final String UNRESERVED = "-._~";

  private PartitionFolder() {}

  /** {@code sparkFolder} is the folder that Spark would write into, {@code _lake_part_0=EU%2Fx y/_lake_part_1=1}. */
  static String of(String sparkFolder, String keys) {
    String[] values = sparkFolder.split("/");
    String[] names = keys.split(",");
    StringBuilder folder = new StringBuilder();
    for (int i = 0; i < names.length; i++) {
      String value = values[i].substring(values[i].indexOf('=') + 1);
      folder.append(i == 0 ? "" : "/").append(names[i]).append('=');
      if (value.equals(NULL)) {
        folder.append(NULL);
      } else {
        String plain = ExternalCatalogUtils.unescapePathName(value);
        appendEncoded(folder, plain.startsWith(ESCAPE) ? plain.substring(ESCAPE.length()) : plain);
      }
    }
    return folder.toString();
  }

  private static void appendEncoded(StringBuilder to, String text) {
    for (byte b : text.getBytes(StandardCharsets.UTF_8)) {
      char c = (char) (b & 0xff);
      if (c < 128 && (Character.isLetterOrDigit(c) || UNRESERVED.indexOf(c) >= 0)) {
        to.append(c);
      } else {
        to.append(String.format("%%%02X", (int) c));
      }
    }
  }
}
