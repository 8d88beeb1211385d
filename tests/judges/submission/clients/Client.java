// Sends the mails of a job (see clients.py) with Jakarta Mail, with the settings that Keycloak makes of its form. Java's
// standard library reads no JSON; the job is a properties file.

import jakarta.activation.DataHandler;
import jakarta.mail.Message;
import jakarta.mail.MessagingException;
import jakarta.mail.Part;
import jakarta.mail.Session;
import jakarta.mail.Transport;
import jakarta.mail.internet.InternetAddress;
import jakarta.mail.internet.MimeBodyPart;
import jakarta.mail.internet.MimeMessage;
import jakarta.mail.internet.MimeMultipart;
import jakarta.mail.util.ByteArrayDataSource;
import java.io.FileInputStream;
import java.io.Reader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.util.Base64;
import java.util.Properties;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

public class Client {
    private static final Properties job = new Properties();

    public static void main(String[] arguments) throws Exception {
        try (Reader reader = Files.newBufferedReader(Path.of(arguments[0]), StandardCharsets.UTF_8)) {
            job.load(reader);
        }
        Session session = Session.getInstance(settings());
        for (int nth = 0; has("mails." + nth + ".number"); nth++) {
            String mail = "mails." + nth + ".";
            String error = null;
            try (Transport transport = session.getTransport("smtp")) {
                MimeMessage message = message(session, mail);
                message.saveChanges();
                transport.connect("waypost", job.getProperty("password"));
                transport.sendMessage(message, message.getAllRecipients());
            } catch (MessagingException problem) {
                error = problem.toString();
            }
            System.out.println("{\"number\": " + job.getProperty(mail + "number") + ", \"error\": " + quoted(error) + "}");
        }
    }

    private static Properties settings() throws Exception {
        Properties settings = new Properties();
        settings.put("mail.smtp.host", job.getProperty("host"));
        settings.put("mail.smtp.port", job.getProperty("port"));
        settings.put("mail.smtp.auth", "true");
        settings.put("mail.smtp.timeout", "10000");
        settings.put("mail.smtp.connectiontimeout", "10000");
        settings.put("mail.smtp.ssl.checkserveridentity", "true");
        if (job.getProperty("tls").equals("tls")) {
            settings.put("mail.smtp.ssl.enable", "true");
        } else {
            settings.put("mail.smtp.starttls.enable", "true");
            settings.put("mail.smtp.starttls.required", "true");
        }
        KeyStore trusted = KeyStore.getInstance("PKCS12");
        trusted.load(null, null);
        try (FileInputStream file = new FileInputStream(job.getProperty("ca"))) {
            trusted.setCertificateEntry("waypost", CertificateFactory.getInstance("X.509").generateCertificate(file));
        }
        TrustManagerFactory managers = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        managers.init(trusted);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, managers.getTrustManagers(), null);
        settings.put("mail.smtp.ssl.socketFactory", context.getSocketFactory());
        return settings;
    }

    private static MimeMessage message(Session session, String mail) throws Exception {
        MimeMessage message = new MimeMessage(session);
        message.setFrom(person(mail + "from"));
        add(message, Message.RecipientType.TO, mail + "to");
        add(message, Message.RecipientType.CC, mail + "cc");
        add(message, Message.RecipientType.BCC, mail + "bcc");
        message.setSubject(job.getProperty(mail + "subject"), "utf-8");
        for (String name : job.stringPropertyNames()) {
            if (name.startsWith(mail + "headers.")) {
                message.setHeader(name.substring((mail + "headers.").length()), job.getProperty(name));
            }
        }
        MimeMultipart bodies = new MimeMultipart("alternative");
        bodies.addBodyPart(body("plain", job.getProperty(mail + "text")));
        if (has(mail + "html")) {
            bodies.addBodyPart(body("html", job.getProperty(mail + "html")));
        }
        MimeBodyPart first = new MimeBodyPart();
        first.setContent(bodies);
        MimeMultipart mixed = new MimeMultipart("mixed", first);
        for (int nth = 0; has(mail + "files." + nth + ".name"); nth++) {
            String file = mail + "files." + nth + ".";
            byte[] content = Base64.getDecoder().decode(job.getProperty(file + "base64"));
            MimeBodyPart part = new MimeBodyPart();
            part.setDataHandler(new DataHandler(new ByteArrayDataSource(content, job.getProperty(file + "type"))));
            part.setFileName(job.getProperty(file + "name"));
            part.setDisposition(Part.ATTACHMENT);
            mixed.addBodyPart(part);
        }
        message.setContent(mixed);
        return message;
    }

    private static MimeBodyPart body(String subtype, String text) throws MessagingException {
        MimeBodyPart part = new MimeBodyPart();
        part.setText(text, "utf-8", subtype);
        return part;
    }

    private static void add(MimeMessage message, Message.RecipientType type, String list) throws Exception {
        for (int nth = 0; has(list + "." + nth + ".1"); nth++) {
            message.addRecipient(type, person(list + "." + nth));
        }
    }

    private static InternetAddress person(String name) throws Exception {
        return new InternetAddress(job.getProperty(name + ".1"), job.getProperty(name + ".0"), "utf-8");
    }

    private static boolean has(String name) {
        return job.getProperty(name) != null;
    }

    private static String quoted(String text) {
        if (text == null) {
            return "null";
        }
        return "\"" + text.replace("\\", "\\\\").replace("\"", "\\\"").replaceAll("\\p{Cntrl}", " ") + "\"";
    }
}
