# Sends the mails of a job (see clients.py) with Ruby's mail, with GitLab's settings for SMTP.
require 'base64'
require 'json'
require 'mail'

job = JSON.parse(File.read(ARGV[0], encoding: 'utf-8'))
settings = {
  address: job['host'], port: job['port'], domain: 'gitlab.judge.example', user_name: 'waypost',
  password: job['password'], authentication: 'login', openssl_verify_mode: 'peer', ca_file: job['ca']
}
settings.merge!(job['tls'] == 'tls' ? { tls: true } : { enable_starttls_auto: true })

def mailboxes(list)
  list.map do |name, address|
    mailbox = Mail::Address.new(address)
    mailbox.display_name = name
    mailbox.encoded
  end
end

job['mails'].each do |given|
  error = nil
  begin
    mail = Mail.new(charset: 'UTF-8')
    mail.delivery_method(:smtp, settings)
    mail.from = mailboxes([given['from']])
    %w[to cc bcc].each { |field| mail.send("#{field}=", mailboxes(given[field])) unless given[field].empty? }
    mail.subject = given['subject']
    given['headers'].each { |name, value| mail[name] = value }
    bodies = Mail::Part.new(content_type: 'multipart/alternative')
    bodies.add_part(Mail::Part.new { content_type 'text/plain; charset=UTF-8'; body given['text'] })
    bodies.add_part(Mail::Part.new { content_type 'text/html; charset=UTF-8'; body given['html'] }) if given['html']
    mail.add_part(bodies)
    given['files'].each do |file|
      # Encoded, since it writes CR LF for each line end of a content that looks like text.
      content = Base64.encode64(Base64.decode64(file['base64']))
      mail.attachments[file['name']] = { mime_type: file['type'], encoding: 'base64', content: content }
    end
    mail.deliver!
  rescue StandardError => problem
    error = problem.message
  end
  puts JSON.generate(number: given['number'], error: error)
end
