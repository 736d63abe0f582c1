package dbt.ducklake.encryption;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.parquet.format.ColumnChunk;
import org.apache.parquet.format.FileMetaData;
import org.apache.parquet.format.RowGroup;
import org.apache.parquet.format.Util;

/** The end of a file, encrypted and plain: the footer, its length, and the magic bytes. */
final class EncryptedFooter {
  static final byte[] MAGIC = "PAR1".getBytes(StandardCharsets.US_ASCII);
  static final byte[] ENCRYPTED_MAGIC = "PARE".getBytes(StandardCharsets.US_ASCII);
  /** The length of the footer, and the magic bytes. */
  static final int TAIL_BYTES = 8;

  /** AES_GCM_V1 and nothing else, as Thrift's compact protocol has FileCryptoMetaData. */
  private static final byte[] ALGORITHM = {0x1c, 0x1c, 0, 0, 0};
  /** Read at once from the end of a file: mostly the footer is in it. */
  private static final int FIRST_READ_BYTES = 64 << 10;

  private EncryptedFooter() {}

  static FileMetaData read(FSDataInputStream source, long length, Modules modules) throws IOException {
    byte[] footer = encryptedBytes(source, length, modules);
    if (!Arrays.equals(ALGORITHM, 0, ALGORITHM.length, footer, 0, Math.min(ALGORITHM.length, footer.length))) {
      throw modules.damaged("another encryption than AES_GCM_V1 without additional authenticated data", null);
    }
    byte[] plain = modules.decrypt(footer, ALGORITHM.length);
    return withoutIndexes(Util.readFileMetaData(new ByteArrayInputStream(plain)));
  }

  private static byte[] encryptedBytes(FSDataInputStream source, long length, Modules modules) throws IOException {
    byte[] end = new byte[(int) Math.min(length, FIRST_READ_BYTES)];
    source.readFully(length - end.length, end);
    int tail = end.length - TAIL_BYTES;
    if (tail < 0 || !Arrays.equals(ENCRYPTED_MAGIC, Arrays.copyOfRange(end, tail + 4, end.length))) {
      throw modules.damaged("no encrypted footer at its end", null);
    }
    int size = size(end, tail);
    if (size < 0 || size > length - TAIL_BYTES) {
      throw modules.damaged("a footer of " + size + " bytes", null);
    }
    if (size <= tail) {
      return Arrays.copyOfRange(end, tail - size, tail);
    }
    byte[] footer = new byte[size];
    source.readFully(length - TAIL_BYTES - size, footer);
    return footer;
  }

  /** The length of a footer, which stands at an offset. */
  static int size(byte[] bytes, int offset) {
    return ByteBuffer.wrap(bytes, offset, 4).order(ByteOrder.LITTLE_ENDIAN).getInt();
  }

  static byte[] encrypted(FileMetaData footer, Modules modules) throws IOException {
    byte[] plain = thrift(withoutIndexes(footer));
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    out.write(ALGORITHM);
    out.write(modules.encrypt(plain, 0, plain.length));
    return withTail(out, ENCRYPTED_MAGIC);
  }

  static byte[] plain(FileMetaData footer) throws IOException {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    out.write(thrift(footer));
    return withTail(out, MAGIC);
  }

  private static byte[] thrift(FileMetaData footer) throws IOException {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    Util.writeFileMetaData(footer, out);
    return out.toByteArray();
  }

  private static byte[] withTail(ByteArrayOutputStream footer, byte[] magic) throws IOException {
    footer.write(ByteBuffer.allocate(4).order(ByteOrder.LITTLE_ENDIAN).putInt(footer.size()).array());
    footer.write(magic);
    return footer.toByteArray();
  }

  /** Takes out where indexes and bloom filters stand: they are not written, and those of others are not decrypted. */
  private static FileMetaData withoutIndexes(FileMetaData footer) {
    for (RowGroup rowGroup : footer.getRow_groups()) {
      for (ColumnChunk column : rowGroup.getColumns()) {
        column.unsetColumn_index_offset();
        column.unsetColumn_index_length();
        column.unsetOffset_index_offset();
        column.unsetOffset_index_length();
        column.getMeta_data().unsetBloom_filter_offset();
        column.getMeta_data().unsetBloom_filter_length();
      }
    }
    return footer;
  }
}
