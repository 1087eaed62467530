"""The test part for secrets, continued: how people and machines write them down, and passwords in words.

``{v}`` is the value and ``{n}`` the name it is given. None of these sentences stands in the tests of the rules.
"""

from typing import Final

FOR_KEYS: Final = (
    "Since this morning {v} answers 401, did anybody revoke it?",
    "export {n}={v}\n./deploy.sh --region eu-west-3",
    '{{"service": "billing", "{n}": "{v}", "retries": 3}}',
    "billing:\n  retries: 3\n  {n}: {v}\n  region: eu-west-3\n",
    "const client = createClient({{ {n}: '{v}' }});",
    "2026-03-02T10:11:12Z WARN gateway: upstream refused {n}={v} status=401",
    "| staging | {n} | `{v}` | rotated in May |",
    '<add key="{n}" value="{v}" />',
    "Bitte trage in der Datei {n}={v} ein und starte den Dienst neu.",
    '# {n} = "{v}"   # remove it before the release',
)
"""For keys that have a name; the first needs a shape of its own."""

FOR_SHAPES: Final = (
    "git clone failed, I used ({v}) as you said.",
    "Ma clé est {v}, ne la partage pas.",
    "curl -s https://api.example.net/v2/things -H 'X-Auth: {v}'",
    "id,owner,value,created\n7,ci,{v},2026-01-04\n",
    "<token>{v}</token>",
    "https://api.example.net/v2/items?limit=5&k={v}&page=2",
    "old={v};new=<to come>",
)
"""Further ways for keys with a shape of their own."""

SAID: Final = """
en|The wifi password for the meeting room is {v}, see you there.
en|Login: kerstin, pw: {v}
en|You can sign in with the user sam and the password {v}
en|use "{v}" as the password for now
en|Our admin passphrase was changed to {v} yesterday.
en|PIN and password: {v}
de|Das Passwort für den Drucker lautet {v}.
de|Dein neues Kennwort ist {v}
de|Zugangsdaten: Benutzer mmeier, Passwort {v}
de|Mein Passwort: {v}
fr|Le mot de passe du serveur est {v}, merci.
fr|Votre nouveau mot de passe : {v}
fr|identifiant : claire, mdp : {v}
fr|connectez-vous avec le mot de passe {v}
es|La contraseña del correo es {v}.
es|Tu nueva contraseña: {v}
es|usuario: marta, clave: {v}
es|entra con la contraseña {v}
it|La password del router è {v}, grazie.
it|La tua nuova password: {v}
it|La parola d'ordine è {v}
pt|A senha do servidor é {v}.
pt|Sua nova senha: {v}
pt|A palavra-passe da conta é {v}
nl|Het wachtwoord van de server is {v}.
nl|Je nieuwe wachtwoord: {v}
nl|log in met gebruiker jan en wachtwoord {v}
ja|サーバーのパスワードは{v}です。
ja|パスワード：{v}
pl|Hasło do serwera to {v}.
sv|Lösenordet till servern är {v}.
"""

ON_COMMAND_LINES: Final = """
mysql -u root -p{v} shop < dump.sql
mysqldump --single-transaction -ushop -p'{v}' shop | gzip > shop.sql.gz
mariadb -h db.internal -u app -p{v}
sshpass -p {v} ssh deploy@10.20.0.4 uptime
sshpass -p '{v}' rsync -a out/ deploy@web1:/srv/www/
sshpass -p"{v}" scp a.tgz ops@host:
redis-cli -h cache.internal -a {v} ping
docker login registry.example.net -u ci -p {v}
podman login --username ci -p {v} registry.example.net
PGPASSWORD={v} psql -h db -U app shop
MYSQL_PWD={v} mysqladmin status
ldapsearch -x -D cn=admin,dc=example,dc=net -w {v} -b dc=example
mongosh "db.internal/shop" -u app -p {v}
openssl pkcs12 -in a.p12 -passin pass:{v} -nodes
echo {v} | sudo -S systemctl restart nginx
echo "deploy:{v}" | chpasswd
smbclient //files/share -U backup%{v}
net use Z: \\\\files\\share /user:backup {v}
xfreerdp /u:admin /p:{v} /v:10.1.1.9
sqlcmd -S db1 -U sa -P {v} -Q "select 1"
unzip -P {v} export.zip
keytool -list -keystore a.jks -storepass {v}
wget --user=bob --password={v} https://files.example.net/a.tgz
curl -u bob:{v} https://files.example.net/a.tgz
ansible-playbook site.yml -e ansible_become_pass={v}
plink -ssh ops@10.1.1.9 -pw {v}
htpasswd -b .htpasswd bob {v}
CREATE USER 'app'@'%' IDENTIFIED BY '{v}';
ALTER ROLE app WITH PASSWORD '{v}';
requirepass {v}
$pw = ConvertTo-SecureString "{v}" -AsPlainText -Force
mosquitto_pub -h mq -u sensor -P {v} -t a -m 1
"""

IN_ADDRESSES: Final = """
postgres://shop:{v}@db.internal:5432/shop
mysql://root:{v}@127.0.0.1/shop
mongodb+srv://app:{v}@cluster0.abcde.mongodb.net/shop
redis://:{v}@cache:6379/1
amqp://worker:{v}@mq.internal/vhost
https://bob:{v}@files.example.net/a.tgz
ftp://bob:{v}@files.example.net/
smtp://mailer:{v}@smtp.example.net:587
The box is root:{v}@192.168.7.20, port 22
scp to deploy:{v}@web3.example.net please
Server=db1;Database=shop;User Id=sa;Password={v};
jdbc:oracle:thin:scott/{v}@db1:1521/ORCL
"""

IN_FILES: Final = """
DB_PASS={v}
SMTP_PASSWORD="{v}"
  smtp_pass: {v}
define('DB_PASSWORD', '{v}');
'password' => '{v}',
<password>{v}</password>
spring.datasource.password={v}
[mail]\\nuser = bob\\npasswd = {v}\\n
psk="{v}"
bindpw {v}
{{"username": "bob", "password": "{v}"}}
machine files.example.net login bob password {v}
"""

WITH_SEEDS: Final = (
    "my seed phrase is {v}",
    "Recovery phrase:\n{v}\n",
    "Meine Wallet-Wörter: {v}. Bitte sicher aufbewahren.",
    "{v}",
    'MNEMONIC="{v}"',
    "Please import this wallet for me, thanks: {v}",
)
"""For seed phrases; also numbered, with commas and line by line."""

NEAR: Final = (
    "The password is required for every new account.",
    "Das Passwort ist falsch, bitte noch einmal versuchen.",
    "Le mot de passe est obligatoire et doit contenir 12 caractères.",
    "La contraseña es incorrecta, vuelve a intentarlo en 15 minutos.",
    "La password è scaduta il 3 marzo 2024.",
    "A senha é pessoal e não deve ser partilhada com ninguém em 2026.",
    "Het wachtwoord is verlopen op 12-03-2025.",
    "Your password was changed on 2026-03-04 at 10:22.",
    "The password for user42 is stored in the vault.",
    "Passwords need 8-16 characters, one digit and one of !?#.",
    "mysql -u root -p shop < dump.sql",
    "mysql --protocol=tcp -P 3307 -u root -p",
    "sshpass -e ssh deploy@10.20.0.4 uptime",
    "sshpass -f /run/pw ssh deploy@host",
    "docker run -p 8080:80 nginx",
    "docker login -u ci --password-stdin",
    "mkdir -p build/out2 && cp -p a1.txt b2.txt",
    "redis-cli -a $REDIS_PASSWORD ping",
    "unzip -p archive.zip data1.csv",
    "ssh -p 2222 deploy@host",
    "echo 3 | sudo tee /proc/sys/vm/drop_caches",
    "Contact: support2@example.net or sales:info@example.net",
    "mailto:jane.doe99@example.net",
    "image: ghcr.io/acme/web:v1.2.3@sha256:" + "ab12" * 16,
    "From:jane99@example.net To:bob7@example.net",
    "npm:@scope/package2@1.2.3 and pkg:npm/react@18.2.0",
    "pip install git+https://git@github.com/acme/tool@v1.2",
    "The stripe docs say keys begin with sk_live_ and tokens with ghp_.",
    "sk_live_xxxxxxxxxxxxxxxxxxxxxxxx",
    "ghp_your_token_goes_here_please",
    "hf_transfer_enabled_by_default_now",
    "npm_config_user_agent and npm_lifecycle_event2",
    "She would like them to come over when they have time this very evening, with some good food that they made",
    "above all things they could only wait there until some other ship would come again from the far north side",
    "pass = 0\nfor row in rows:\n    pass\n",
    "the pass: 12 km long, 2,106 m high",
    "bypass=true&compass=N45",
    "psk=secret and the clave: Sol mayor",
)
"""Texts that are near a secret and hold none."""
