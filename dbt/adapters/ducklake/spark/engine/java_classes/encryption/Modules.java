package dbt.ducklake.encryption;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.security.GeneralSecurityException;
import java.security.SecureRandom;
import java.util.Arrays;
import javax.crypto.Cipher;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.SecretKeySpec;
import org.apache.hadoop.fs.Path;

/**
 * Encrypts and decrypts the modules of a file: its footer, and the header and the data of each page.
 *
 * <p>A module is its length, in 4 bytes, and AES-GCM: a nonce of 12 bytes, the encrypted bytes, a tag of 16. As DuckDB
 * writes it, it has no additional authenticated data.
 */
final class Modules {
  static final int LENGTH_BYTES = 4;
  static final int NONCE_BYTES = 12;
  static final int TAG_BYTES = 16;
  /** What encryption adds to a module. */
  static final int ADDED_BYTES = LENGTH_BYTES + NONCE_BYTES + TAG_BYTES;

  private static final SecureRandom RANDOM = new SecureRandom();

  private final SecretKeySpec key;
  private final Path path;
  private final Cipher cipher;

  Modules(byte[] key, Path path) throws IOException {
    this.key = new SecretKeySpec(key, "AES");
    this.path = path;
    try {
      this.cipher = Cipher.getInstance("AES/GCM/NoPadding");
    } catch (GeneralSecurityException e) {
      throw new IOException(e);
    }
  }

  /** The module for some bytes. */
  byte[] encrypt(byte[] plain, int offset, int count) throws IOException {
    byte[] module = new byte[ADDED_BYTES + count];
    byte[] nonce = new byte[NONCE_BYTES];
    RANDOM.nextBytes(nonce);
    ByteBuffer.wrap(module).order(ByteOrder.LITTLE_ENDIAN).putInt(module.length - LENGTH_BYTES).put(nonce);
    try {
      cipher.init(Cipher.ENCRYPT_MODE, key, new GCMParameterSpec(8 * TAG_BYTES, nonce));
      cipher.doFinal(plain, offset, count, module, LENGTH_BYTES + NONCE_BYTES);
    } catch (GeneralSecurityException e) {
      throw new IOException(e);
    }
    return module;
  }

  /** The plain bytes of the module at an offset. */
  byte[] decrypt(byte[] bytes, int offset) throws IOException {
    int start = offset + LENGTH_BYTES;
    int length = length(bytes, offset);
    if (start + length > bytes.length) {
      throw damaged("a module that is cut off", null);
    }
    byte[] nonce = Arrays.copyOfRange(bytes, start, start + NONCE_BYTES);
    try {
      cipher.init(Cipher.DECRYPT_MODE, key, new GCMParameterSpec(8 * TAG_BYTES, nonce));
      return cipher.doFinal(bytes, start + NONCE_BYTES, length - NONCE_BYTES);
    } catch (GeneralSecurityException e) {
      throw damaged("a module that its key in the catalog does not open, or is another file", e);
    }
  }

  /** The length of the module at an offset, without the bytes that say it. */
  int length(byte[] bytes, int offset) throws IOException {
    int length = ByteBuffer.wrap(bytes, offset, LENGTH_BYTES).order(ByteOrder.LITTLE_ENDIAN).getInt();
    if (length < NONCE_BYTES + TAG_BYTES) {
      throw damaged("a module of " + length + " bytes", null);
    }
    return length;
  }

  IOException damaged(String what, Exception cause) {
    return new IOException("the encrypted Parquet file " + path + " is damaged: it has " + what, cause);
  }
}
