"""What local mails hold: phone numbers without a word that says so, identifiers beside the initials that name them."""

import random

import phonenumbers

TEXTS = {
    "CZ": "Dobrý den, prosím ozvěte se mi zítra odpoledne, budu doma. {} Děkuji a přeji hezký den.",
    "PL": "Dzień dobry, proszę odezwać się jutro po południu, będę w domu. {} Dziękuję i pozdrawiam.",
    "PT": "Bom dia, amanhã à tarde estarei em casa, pode falar comigo. {} Obrigado e um bom dia.",
    "NO": "Hei, ta gjerne kontakt i morgen ettermiddag, da er jeg hjemme. {} Takk og ha en fin dag.",
    "DK": "Hej, kontakt mig gerne i morgen eftermiddag, så er jeg hjemme. {} Tak og hav en god dag.",
    "ES": "Hola, mañana por la tarde estaré en casa, puede hablar conmigo. {} Gracias y buen día.",
    "SE": "Hej, hör gärna av dig i morgon eftermiddag, då är jag hemma. {} Tack och ha en fin dag.",
    "FI": "Hei, ota yhteyttä huomenna iltapäivällä, olen silloin kotona. {} Kiitos ja hyvää päivänjatkoa.",
    "RO": "Bună ziua, mâine după-amiază sunt acasă, mă puteți găsi. {} Mulțumesc și o zi bună.",
    "TR": "Merhaba, yarın öğleden sonra bana ulaşabilirsiniz, evde olacağım. {} Teşekkürler, iyi günler.",
    "ID": "Halo, besok sore saya ada di rumah, silakan menghubungi saya. {} Terima kasih atas bantuannya.",
    "VN": "Chào anh, chiều mai em ở nhà, anh có thể gặp em. {} Cảm ơn anh rất nhiều.",
    "RU": "Здравствуйте, завтра после обеда я буду дома, свяжитесь со мной. {} Спасибо и хорошего дня.",
    "GR": "Καλημέρα, αύριο το απόγευμα θα είμαι στο σπίτι, επικοινωνήστε μαζί μου. {} Ευχαριστώ πολύ.",
    "CN": "您好，我明天下午一直都在家里，有什么事情请直接联系我。 {} 谢谢您的帮助。",
}
ENGLISH = "Hello, I am at home tomorrow afternoon, so please get in touch. {} Thank you and have a nice day."


def drawn(region: str, count: int) -> list[str]:
    """Return numbers of mobiles as people of a country write them."""
    example = phonenumbers.example_number_for_type(region, phonenumbers.PhoneNumberType.MOBILE)
    assert example is not None
    rng, stem, numbers = random.Random(region), str(example.national_number)[:2], []
    while len(numbers) < count:
        digits = stem + "".join(rng.choice("0123456789") for _ in str(example.national_number)[2:])
        number = phonenumbers.PhoneNumber(country_code=example.country_code, national_number=int(digits))
        if phonenumbers.is_valid_number_for_region(number, region):
            numbers.append(phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.NATIONAL))
    return numbers


NAMED = [
    ("My BVN is {} and the account is closed.", "22412345678"),
    ("NIN: {}", "48210937465"),
    ("Please pay into NUBAN: {}", "2034567891"),
    ("Huduma Namba {}", "123456789"),
    ("KRA PIN {}", "A012345678Z"),
    ("Ghana Card {}", "GHA-712345678-0"),
    ("SSNIT {}", "C018207190014"),
    ("NIDA {}", "19900101-12345-00001-23"),
    ("Iqama {}, valid until May", "2123456789"),
    ("Civil ID {}", "290010112345"),
    ("QID {}", "29035612345"),
    ("CNIC {}", "42101-1234567-1"),
    ("my NIC no is {}", "199123456789"),
    ("NIC {}", "912345678V"),
    ("UAN {}", "100123456789"),
    ("UPI: {}", "ravi.kumar@okhdfcbank"),
    ("NIK saya {}, mohon dicek.", "3174052505900003"),
    ("No. KTP {}", "3174052505900003"),
    ("Nomor BPJS {}", "0001234567891"),
    ("MST: {}", "0312345678"),
    ("Số CCCD: {}", "079203001234"),
    ("SSS number {}", "34-1234567-8"),
    ("PhilHealth no. {}", "12-345678901-2"),
    ("PhilSys number {}", "1234-5678-9012-3456"),
    ("Pag-IBIG MID {}", "1212-3456-7890"),
    ("MyKad {}", "900101-14-5678"),
    ("DPI {}", "2345 67890 0101"),
    ("Identidad {}", "0801-1990-12345"),
    ("Cédula de identidad {}", "V-12345678"),
    ("RUC {}", "10456789123"),
    ("CCI {}", "002-193-001234567890-12"),
    ("Chave PIX {}", "11987654321"),
    ("número de utente {}", "123456789"),
]
