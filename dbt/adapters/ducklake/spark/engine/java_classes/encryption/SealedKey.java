package dbt.ducklake.encryption;

import java.io.IOException;
import java.security.GeneralSecurityException;
import java.util.Arrays;
import java.util.Base64;
import javax.crypto.Cipher;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.SecretKeySpec;
import org.apache.hadoop.conf.Configuration;

/**
 * The key of a file as it stands in a path: encrypted with a key of the Spark session.
 *
 * <p>Spark prints paths in plans and logs. Of settings whose names contain "secret" it prints no value.
 */
final class SealedKey {
  /** The setting with the key of the session, in Base64. */
  static final String SESSION_KEY = "ducklake.encryption.secret";

  private SealedKey() {}

  static byte[] open(Configuration conf, String sealed) throws IOException {
    String sessionKey = conf.get(SESSION_KEY);
    if (sessionKey == null) {
      throw new IOException("the setting " + SESSION_KEY + " is missing: only a LakeSession reads this path");
    }
    byte[] bytes = Base64.getUrlDecoder().decode(sealed);
    byte[] nonce = Arrays.copyOf(bytes, Modules.NONCE_BYTES);
    try {
      Cipher cipher = Cipher.getInstance("AES/GCM/NoPadding");
      SecretKeySpec key = new SecretKeySpec(Base64.getDecoder().decode(sessionKey), "AES");
      cipher.init(Cipher.DECRYPT_MODE, key, new GCMParameterSpec(8 * Modules.TAG_BYTES, nonce));
      return cipher.doFinal(bytes, nonce.length, bytes.length - nonce.length);
    } catch (GeneralSecurityException e) {
      throw new IOException("the path was made in another Spark session, so its key can not be opened in this one", e);
    }
  }
}
