# ruff: noqa: E501, RUF001 - words of many scripts, one kind and script on a line
"""List words of many languages that say what a value is, by the English words with the same meaning.

Written without the Arabic article and as in dictionaries; `app.core.content.cues.reading` knows endings and articles.
Languages that the recognizers themselves know (English, German, French, Spanish, Italian, Portuguese, Dutch) have few
words here.
"""

from typing import Final

WORDS: Final[dict[str, tuple[str, ...]]] = {
    "phone number": (
        "电话, 电话号, 电话号码, 手机, 手机号, 手机号码, 联系电话, 联系方式, 移动电话, 固定电话, 座机, 家庭电话, 办公电话, 来电号码, 热线, 致电",
        "電話, 電話號碼, 手機, 手機號碼, 聯絡電話, 聯繫電話, 行動電話, 流動電話, 市話, 住家電話, 公司電話, 熱線, 來電",
        "電話番号, 携帯, 携帯電話, 携帯番号, 携帯電話番号, 携帯の番号, 電話の番号, 連絡先, 連絡先電話番号, 固定電話, 自宅電話, 勤務先電話, ケータイ, スマホ, スマホの番号, テレホン, お電話",
        "전화, 전화번호, 전화 번호, 휴대폰, 휴대전화, 휴대폰번호, 휴대폰 번호, 휴대전화번호, 휴대전화 번호, 핸드폰, 핸드폰번호, 핸드폰 번호, 연락처, 집전화, 유선전화, 폰번호",
        "телефон, тел, номер телефона, мобильный, мобильный телефон, номер мобильного, моб, сотовый, сотовый телефон, контактный телефон, номер для связи",
        "номер телефону, мобільний, мобільний телефон, телефонний номер, телефонен номер, мобилен, мобилен телефон, джиэсем, број телефона, мобилни, мобилни телефон, телефонный номер",
        "هاتف, رقم هاتف, تليفون, رقم تليفون, تلفون, رقم تلفون, جوال, رقم جوال, موبايل, رقم موبايل, محمول, رقم محمول, هاتف محمول, هاتف جوال, للتواصل, للاتصال",
        "تلفن, شماره تلفن, تلفن همراه, شماره همراه, شماره تماس, موبایل, شماره موبایل, تلفن ثابت, شماره تلفن همراه",
        "טלפון, מספר טלפון, טל, טלפון נייד, נייד, מספר נייד, סלולרי, פלאפון, מס טלפון, טלפון בבית",
        "फोन, फ़ोन, फोन नंबर, फ़ोन नंबर, फोन नम्बर, मोबाइल, मोबाइल नंबर, मोबाइल नम्बर, दूरभाष, दूरभाष संख्या, मोबाइल संख्या, संपर्क नंबर, टेलीफोन, टेलीफोन नंबर",
        "โทร, โทรศัพท์, เบอร์โทร, เบอร์โทรศัพท์, เบอร์มือถือ, มือถือ, หมายเลขโทรศัพท์, โทรศัพท์มือถือ, เบอร์ติดต่อ, เบอร์",
        "điện thoại, số điện thoại, điện thoại di động, sđt, đt, di động, số di động, số máy, liên hệ",
        "τηλέφωνο, τηλ, αριθμός τηλεφώνου, κινητό, κινητό τηλέφωνο, σταθερό, τηλέφωνο επικοινωνίας",
        "telefon numarası, telefon no, cep telefonu, cep no, gsm no, nomor telepon, telepon, telp, no telp, no. telp, no telepon, no. telepon, no. hp, no. wa, nomor hp, no hp, nomor ponsel, ponsel, nomor telefon, no tel, nomor wa",
        "tél, téléphone mobile, numéro de téléphone, telefonní číslo, tel číslo, mobilní telefon, telefónne číslo, mobil číslo, numer telefonu, tel komórkowy, komórka, telefon komórkowy, telefonszám, mobilszám, număr de telefon, nr de telefon, telefon mobil, mobilnummer, telefonnummer, puhelin, puhelinnumero, puh, matkapuhelin, matkapuhelinnumero, sími, símanúmer, farsími, broj telefona, broj mobitela, mobitel, telefonska številka, telefoninumber, mobiiltelefon, tālrunis, tālruņa numurs, telefono numeris, mobilusis telefonas",
    ),
    "fax": (
        "传真, 传真号码, 傳真, 傳真號碼, ファックス, ファクス, ファックス番号, 팩스, 팩스번호, 팩스 번호, факс, فاكس, رقم فاكس, نمابر, فکس, פקס, फैक्स, โทรสาร, แฟกซ์, φαξ",
    ),
    "date of birth": (
        "出生日期, 出生年月, 出生年月日, 生日, 出生于, 出生於",
        "生年月日, 誕生日, お誕生日, 生まれ, 出生日",
        "생년월일, 생일, 출생일, 출생일자, 출생 연월일, 출생",
        "дата рождения, рождения, родился, родилась, день рождения, рожд, дата рожд, г.р, г. р, д.р, д/р",
        "дата народження, народження, народився, народилася, дата на раждане, раждане, роден, родена, рожден ден, датум рођења, рођен, рођена, рођендан, датум рођ",
        "تاريخ ميلاد, تاريخ ولادة, ميلاد, يوم ميلاد, مواليد, مولود في, ولد في, ولدت في, تاریخ تولد, تولد, متولد, زادروز",
        "תאריך לידה, תאריך הלידה, יום הולדת, נולד, נולדה, ת לידה",
        "जन्म तिथि, जन्मतिथि, जन्म तारीख, जन्म दिनांक, जन्मदिन, जन्म दिवस, जन्म की तारीख, जन्म",
        "วันเกิด, วันเดือนปีเกิด, วัน เดือน ปีเกิด, วัน/เดือน/ปีเกิด, เกิดวันที่, เกิดเมื่อ, เกิดเมื่อวันที่",
        "ngày sinh, ngày tháng năm sinh, sinh ngày, năm sinh, sinh nhật",
        "ημερομηνία γέννησης, ημ γέννησης, ημ/νία γέννησης, γέννησης, γεννήθηκε, γενέθλια, γεννηθείς, γεννηθείσα",
        "doğum tarihi, doğum, doğum günü, doğumlu, d tarihi, tanggal lahir, tgl lahir, lahir, tempat tanggal lahir, tarikh lahir",
        "data urodzenia, ur., nar., szül., urodzona, urodzony, datum narození, narozen, narozena, dátum narodenia, narodený, narodená, született, születési dátum, születési idő, data nașterii, născut, născută, data naşterii, født, fødselsdato, fødselsdag, född, födelsedatum, födelsedag, syntymäaika, syntynyt, fæðingardagur, datum rođenja, rođen, rođena, datum rojstva, rojen, rojena, sünniaeg, sündinud, dzimšanas datums, dzimis, gimimo data, gimęs",
    ),
    "date of death": (
        "死亡日期, 去世日期, 逝世日期, 死亡時間, 死亡时间, 去世于, 逝世于, 没年月日, 死亡日, 死亡年月日, 사망일, 사망일자, 사망 일자",
        "дата смерти, умер, умерла, дата смерті, помер, померла, дата на смъртта, починал, починала, датум смрти, преминуо",
        "تاريخ وفاة, توفي, توفيت, توفي في, تاریخ وفات, تاریخ فوت, درگذشت, תאריך פטירה, נפטר, נפטרה, मृत्यु तिथि, मृत्यु की तारीख, วันที่เสียชีวิต, เสียชีวิตเมื่อ, วันตาย",
        "ngày mất, ngày chết, ημερομηνία θανάτου, απεβίωσε, ölüm tarihi, tanggal kematian, tanggal meninggal, data śmierci, zmarł, zmarła, datum úmrtí, zemřel, zemřela, dátum úmrtia, halál dátuma, data decesului, dødsdato, dødsdag, död, kuolinpäivä, kuollut",
    ),
    "passport number": (
        "护照, 护照号, 护照号码, 护照编号, 護照, 護照號碼, 護照編號, 護照號, パスポート, パスポート番号, 旅券, 旅券番号, 여권, 여권번호, 여권 번호",
        "паспорт, номер паспорта, паспорт серия, серия и номер паспорта, паспорт серия и номер, загранпаспорт, номер загранпаспорта, паспортные данные, паспорт гражданина, серія та номер паспорта, закордонний паспорт, номер на паспорт, паспорт номер, пасош, број пасоша",
        "جواز سفر, رقم جواز سفر, رقم جواز, جواز, گذرنامه, شماره گذرنامه, شماره پاسپورت, پاسپورت, דרכון, מספר דרכון, מס דרכון",
        "पासपोर्ट, पासपोर्ट नंबर, पासपोर्ट संख्या, หนังสือเดินทาง, เลขที่หนังสือเดินทาง, หมายเลขหนังสือเดินทาง, พาสปอร์ต, เลขพาสปอร์ต",
        "hộ chiếu, số hộ chiếu, διαβατήριο, αριθμός διαβατηρίου, αρ διαβατηρίου, pasaport numarası, pasaport no, pasaport, nomor paspor, no paspor, paspor, numer paszportu, paszport, číslo pasu, číslo cestovního pasu, cestovní pas, cestovný pas, útlevél, útlevélszám, útlevél száma, pașaport, număr pașaport, passnummer, passinumero, vegabréf, broj putovnice, broj pasoša, pasoš, putovnica",
    ),
    "national id": (
        "身份证, 身份证号, 身份证号码, 居民身份证, 公民身份号码, 证件号, 证件号码, 身分證, 身分證字號, 身分證號碼, 身份證, 身份證號碼, 身份證號, 統一編號, 居留證號碼, 居留证号码",
        "マイナンバー, 個人番号, 在留カード番号, 身分証番号, 身分証明書番号, 주민등록번호, 주민번호, 주민 등록 번호, 주민등록 번호, 외국인등록번호, 외국인 등록번호, 신분증번호, 신분증 번호",
        "удостоверение личности, номер удостоверения личности, иин, личный номер, рнокпп, єдрпоу, егн, лична карта, номер на лична карта, јмбг, матични број, број личне карте, лична карта број",
        "رقم هوية, هوية, هوية وطنية, رقم هوية وطنية, رقم وطني, رقم قومي, بطاقة هوية, رقم بطاقة, رقم بطاقة شخصية, رقم مدني, رقم إقامة, إقامة, کد ملی, کدملی, شماره ملی, کارت ملی, شماره شناسنامه, شماره کارت ملی",
        "תעודת זהות, מספר זהות, מס זהות, ת.ז, תז, מספר תעודת זהות",
        "आधार, आधार नंबर, आधार संख्या, आधार कार्ड, आधार कार्ड नंबर, पहचान पत्र संख्या, पहचान संख्या, मतदाता पहचान पत्र, บัตรประชาชน, เลขบัตรประชาชน, เลขประจำตัวประชาชน, เลขที่บัตรประชาชน, หมายเลขบัตรประชาชน, เลขประชาชน",
        "cccd, số cccd, căn cước, căn cước công dân, số căn cước, cmnd, số cmnd, chứng minh nhân dân, số chứng minh nhân dân, số định danh, mã định danh",
        "ταυτότητα, αριθμός ταυτότητας, α.δ.τ, αδτ, αρ ταυτότητας, δελτίο ταυτότητας, tc kimlik, tc kimlik no, t.c. kimlik no, kimlik no, kimlik numarası, nomor ktp, no ktp, nomor induk kependudukan, no kad pengenalan, kad pengenalan",
        "dowód osobisty, numer dowodu, nr dowodu, rodné číslo, číslo občanského průkazu, občanský průkaz, číslo op, občiansky preukaz, személyi szám, személyi igazolvány, szig szám, carte de identitate, buletin, cod numeric personal, personnummer, fødselsnummer, henkilötunnus, kennitala, osobna iskaznica, lična karta, broj lične karte, matični broj, isikukood, personas kods, asmens kodas",
    ),
    "tax id": (
        "税号, 纳税人识别号, 纳税识别号, 统一社会信用代码, 税务登记号, 税籍編號, 稅號, 納稅人識別號, 稅籍編號, 納税者番号, 法人番号, 사업자등록번호, 사업자 등록번호, 납세자번호, 납세자 번호",
        "инн, идентификационный номер налогоплательщика, номер налогоплательщика, огрн, огрнип, кпп, іпн, ідентифікаційний код, податковий номер, данъчен номер, еик, булстат, пиб, порески број",
        "رقم ضريبي, رقم تعريف ضريبي, رقم تسجيل ضريبي, بطاقة ضريبية, شماره اقتصادی, کد اقتصادی, شناسه ملی, מספר עוסק, עוסק מורשה, מספר עוסק מורשה, תיק ניכויים, ח.פ, पैन, पैन नंबर, पैन कार्ड, कर पहचान संख्या, เลขประจำตัวผู้เสียภาษี, เลขผู้เสียภาษี",
        "mã số thuế, mst, αφμ, α.φ.μ, αριθμός φορολογικού μητρώου, vergi no, vergi numarası, vergi kimlik no, npwp, nomor npwp, nomor pokok wajib pajak, numer identyfikacji podatkowej, dič, ičo, adószám, adóazonosító, cod fiscal, cod de identificare fiscală, skattenummer, verotunnus, porezni broj, poreski broj, davčna številka",
    ),
    "driving licence number": (
        "驾驶证, 驾驶证号, 驾驶证号码, 驾照, 驾照号, 驾照号码, 駕照, 駕照號碼, 駕駛執照, 駕駛執照號碼, 運転免許証, 運転免許証番号, 免許証番号, 運転免許番号, 운전면허, 운전면허번호, 운전면허 번호, 운전면허증, 면허번호, 면허 번호",
        "водительское удостоверение, номер водительского удостоверения, водительские права, в/у, посвідчення водія, водійське посвідчення, шофьорска книжка, свидетелство за управление, возачка дозвола, број возачке дозволе",
        "رخصة قيادة, رقم رخصة, رقم رخصة قيادة, رخصة سياقة, گواهینامه, شماره گواهینامه, گواهینامه رانندگی, רישיון נהיגה, מספר רישיון נהיגה, מספר רישיון, ड्राइविंग लाइसेंस, ड्राइविंग लाइसेंस नंबर, लाइसेंस नंबर, ใบขับขี่, เลขที่ใบขับขี่, ใบอนุญาตขับขี่, เลขใบขับขี่",
        "giấy phép lái xe, số giấy phép lái xe, gplx, bằng lái xe, số bằng lái, άδεια οδήγησης, αριθμός άδειας οδήγησης, δίπλωμα οδήγησης, ehliyet no, sürücü belgesi, sürücü belgesi no, ehliyet numarası, surat izin mengemudi, prawo jazdy, numer prawa jazdy, řidičský průkaz, číslo řidičského průkazu, vodičský preukaz, jogosítvány, jogosítvány száma, vezetői engedély, permis de conducere, førerkort, førerkortnummer, kørekort, körkort, körkortsnummer, ajokortti, ökuskírteini, vozačka dozvola, vozniško dovoljenje",
    ),
    "social insurance number": (
        "社保号, 社保卡号, 社会保障号, 社会保障号码, 社会保险号, 社保号码, 社會保險號碼, 勞保號碼, 年金番号, 基礎年金番号, 雇用保険番号, 사회보장번호, 국민연금번호, 국민연금 번호, 고용보험번호",
        "снилс, номер снилс, страховой номер, пенсионное свидетельство, социальный номер, номер соціального страхування, осигурителен номер, број осигурања, лбо",
        "رقم ضمان, رقم ضمان اجتماعي, ضمان اجتماعي, رقم تأمينات, رقم تأمين اجتماعي, شماره تأمین اجتماعی, شماره بیمه تأمین اجتماعی, ביטוח לאומי, מספר ביטוח לאומי, सामाजिक सुरक्षा संख्या, सामाजिक सुरक्षा नंबर, เลขประกันสังคม, เลขที่ประกันสังคม, หมายเลขประกันสังคม",
        "bhxh, số bhxh, mã số bhxh, số bảo hiểm xã hội, mã số bảo hiểm xã hội, αμκα, α.μ.κ.α, αμα, sgk no, sgk sicil no, ssk no, sigorta sicil no, nomor bpjs, no bpjs, bpjs ketenagakerjaan, numer ubezpieczenia, číslo pojištění, taj szám, társadalombiztosítási szám, cod asigurat",
    ),
    "health insurance number": (
        "医保号, 医保卡号, 医疗保险号, 医保编号, 健保卡號, 健保卡號碼, 健康保險號碼, 保険証番号, 被保険者番号, 健康保険証番号, 被保険者証番号, 記号番号, 保険者番号, 건강보험번호, 건강보험 번호, 건강보험증번호, 의료보험번호",
        "полис омс, номер полиса омс, номер полиса, полис, медицинский полис, омс, страховой полис, поліс, номер поліса, здравна осигуровка, здравствена књижица",
        "رقم تأمين صحي, تأمين صحي, رقم تأمين, بطاقة تأمين, شماره بیمه, بیمه سلامت, دفترچه بیمه, קופת חולים, מספר חבר, ביטוח בריאות, स्वास्थ्य बीमा संख्या, स्वास्थ्य बीमा नंबर, बीमा नंबर, बीमा संख्या, เลขประกันสุขภาพ, เลขบัตรประกันสุขภาพ, บัตรทอง",
        "bhyt, số bhyt, mã thẻ bhyt, số thẻ bảo hiểm y tế, thẻ bảo hiểm y tế, αριθμός ασφάλισης, αρ ασφάλισης, sigorta no, sağlık sigortası no, poliçe no, bpjs kesehatan, nomor asuransi, nomor polis, numer polisy, číslo pojištěnce, číslo poistenca, număr asigurare, card de sănătate, sygesikringsnummer, sjúkratryggingar",
    ),
    "patient number": (
        "患者编号, 患者号, 病历号, 病案号, 住院号, 门诊号, 就诊卡号, 病人编号, 病歷號, 病歷號碼, 患者編號, 患者番号, 患者ID, カルテ番号, 診察券番号, 환자번호, 환자 번호, 차트번호, 차트 번호, 병록번호, 환자등록번호",
        "номер пациента, пациент номер, номер медкарты, медкарта, номер медицинской карты, медицинская карта, история болезни, номер истории болезни, номер карты пациента, номер пацієнта, номер медичної картки, пациентски номер, број пацијента, број картона",
        "رقم مريض, رقم ملف طبي, ملف طبي, شماره بیمار, شماره پرونده, شماره پرونده پزشکی, کد بیمار, מספר מטופל, תיק רפואי, מספר תיק רפואי, रोगी संख्या, मरीज नंबर, मरीज संख्या, रोगी आईडी, หมายเลขผู้ป่วย, เลขประจำตัวผู้ป่วย, รหัสผู้ป่วย, เลขเวชระเบียน, เลขที่ผู้ป่วย",
        "mã bệnh nhân, số bệnh án, mã hồ sơ bệnh án, αριθμός ασθενούς, αριθμός φακέλου ασθενούς, hasta no, hasta numarası, dosya no, protokol no, nomor rekam medis, no rekam medis, no rm, nomor pasien, numer pacjenta, číslo pacienta, chorobopis, betegszám, beteg azonosító, număr pacient, pasientnummer, patientnummer, potilasnumero, broj pacijenta",
    ),
    "bank account number": (
        "银行账号, 银行帐号, 银行账户, 银行卡账号, 账号, 帐号, 账户号码, 收款账号, 开户账号, 对公账户, 銀行帳號, 帳號, 銀行賬號, 賬號, 帳戶號碼, 銀行帳戶, 口座番号, 銀行口座, 銀行口座番号, 振込先口座, 普通預金, 普通口座, 계좌, 계좌번호, 계좌 번호, 은행계좌, 은행 계좌, 은행계좌번호, 입금계좌, 통장번호",
        "расчетный счет, номер счета, банковский счет, р/с, лицевой счет, номер расчетного счета, счет получателя, л/с, розрахунковий рахунок, номер рахунку, банківський рахунок, банкова сметка, номер на сметка, број рачуна, текући рачун, жиро рачун",
        "رقم حساب, حساب بنكي, رقم حساب بنكي, حساب مصرفي, شماره حساب, حساب بانکی, شماره شبا, شبا, חשבון בנק, מספר חשבון, מס חשבון, खाता संख्या, खाता नंबर, बैंक खाता, बैंक खाता संख्या, बैंक खाता नंबर, เลขที่บัญชี, เลขบัญชี, หมายเลขบัญชี, บัญชีธนาคาร, เลขบัญชีธนาคาร",
        "số tài khoản, stk, tài khoản, tài khoản ngân hàng, số tk, αριθμός λογαριασμού, τραπεζικός λογαριασμός, hesap no, hesap numarası, banka hesap no, nomor rekening, no rekening, no rek, no. rek, nomor akaun, numer konta, numer rachunku, rachunek bankowy, číslo účtu, bankovní účet, bankový účet, bankszámla, bankszámlaszám, számlaszám, cont bancar, număr de cont, nr cont, kontonummer, bankkonto, tilinumero, pankkitili, reikningsnúmer, broj računa, žiro račun, številka računa, arvelduskonto, konta numurs, sąskaitos numeris",
    ),
    "routing number": (
        "联行号, 银行代码, 银行行号, 开户行号, 銀行代碼, 銀行代號, 分行代碼, 銀行コード, 支店コード, 店番, 金融機関コード, 은행코드, 은행 코드, 지점코드",
        "бик, бик банка, код банка, мфо, код банку, банков код, رمز بنك, كود بنك, کد بانک, کد شعبه, קוד בנק, מספר בנק, बैंक कोड, शाखा कोड, आईएफएससी, आईएफएससी कोड, รหัสธนาคาร, รหัสสาขา",
        "mã ngân hàng, mã chi nhánh, κωδικός τράπεζας, banka kodu, şube kodu, kode bank, kode cabang, kod banku, kód banky, bankkód",
    ),
    "card number": (
        "卡号, 银行卡号, 信用卡号, 信用卡号码, 信用卡, 借记卡号, 银行卡, 卡號, 信用卡號, 信用卡號碼, 卡片號碼, カード番号, クレジットカード番号, クレジットカード, クレカ番号, 카드번호, 카드 번호, 신용카드, 신용카드번호, 신용카드 번호, 체크카드번호",
        "номер карты, карта номер, номер банковской карты, банковская карта, кредитная карта, номер кредитной карты, карта сбербанк, номер картки, кредитна картка, банківська картка, номер на карта, кредитна карта, број картице, кредитна картица",
        "رقم بطاقة ائتمان, بطاقة ائتمان, بطاقة ائتمانية, رقم بطاقة ائتمانية, بطاقة بنكية, شماره کارت, کارت بانکی, کارت اعتباری, כרטיס אשראי, מספר כרטיס, מספר כרטיס אשראי, कार्ड नंबर, कार्ड संख्या, क्रेडिट कार्ड, क्रेडिट कार्ड नंबर, डेबिट कार्ड, บัตรเครดิต, หมายเลขบัตร, เลขบัตร, หมายเลขบัตรเครดิต, เลขบัตรเครดิต, บัตรเดบิต",
        "số thẻ, thẻ tín dụng, số thẻ tín dụng, αριθμός κάρτας, πιστωτική κάρτα, kart numarası, kart no, kredi kartı, kredi kartı no, nomor kartu, no kartu, kartu kredit, numer karty, karta kredytowa, číslo karty, kreditní karta, platební karta, kártyaszám, bankkártya, număr card, card de credit, kortnummer, kredittkort, kreditkort, luottokortti, kortin numero, broj kartice, kreditna kartica",
    ),
    "cvv": (
        "安全码, 卡安全码, 验证值, 安全碼, 卡片安全碼, 末三碼, 背面末三码, セキュリティコード, カード確認番号, 보안코드, 보안 코드, 카드 보안코드, код безопасности, код карты, код безпеки, код за сигурност, сигурносни код, رمز أمان, رمز تحقق من بطاقة, کد امنیتی, קוד אבטחה, ספרות בגב הכרטיס, सुरक्षा कोड, सीवीवी, รหัสความปลอดภัย, รหัสหลังบัตร, mã bảo mật, κωδικός ασφαλείας, güvenlik kodu, kode keamanan, kod bezpieczeństwa, bezpečnostní kód, bezpečnostný kód, biztonsági kód, cod de securitate, sikkerhetskode, sikkerhedskode, säkerhetskod, turvakoodi",
    ),
    "card expiry": (
        "有效期, 有效期至, 卡有效期, 到期日, 有效期限, 有效日期, カード有効期限, 有効期限, 유효기간, 유효 기간, 만료일, 카드 유효기간, срок действия, срок действия карты, действительна до, термін дії, срок на валидност, рок важења, تاريخ انتهاء, تاريخ انتهاء صلاحية, صالحة حتى, تاریخ انقضا, תוקף, תוקף הכרטיס, समाप्ति तिथि, वैधता, วันหมดอายุ, หมดอายุ, ngày hết hạn, hạn sử dụng thẻ, hiệu lực đến, ημερομηνία λήξης, son kullanma tarihi, son kullanma, masa berlaku, berlaku sampai, data ważności, ważna do, platnost do, platnost karty, platnosť do, lejárat, valabil până, utløpsdato, udløbsdato, giltig till, utgångsdatum",
    ),
    "pin": (
        "PIN码, PIN碼, 取款密码, 支付密码, 提款密碼, 暗証番号, 暗証, 비밀번호 4자리, 핀번호, 핀 번호, пин, пин код, пинкод, пін, пін код, رقم سري, رمز سري, کد پین, رمز کارت, קוד סודי, קוד פין, पिन, पिन नंबर, รหัสพิน, รหัสเอทีเอ็ม, รหัส ATM, mã pin, κωδικός pin, kode pin, pin kodu, kod pin, pin kód, cod pin, pin-kode, pin-kod, pin-koodi",
    ),
    "verification code": (
        "验证码, 校验码, 短信验证码, 动态码, 驗證碼, 簡訊驗證碼, 動態密碼, 認証コード, 確認コード, ワンタイムパスワード, 인증번호, 인증 번호, 인증코드, 일회용 비밀번호, код подтверждения, код из смс, смс код, одноразовый код, одноразовый пароль, код підтвердження, одноразовий код, код за потвърждение, код за потврду, رمز تحقق, رمز تأكيد, كود تفعيل, رمز یکبار مصرف, کد تأیید, کد تایید, קוד אימות, קוד חד פעמי, सत्यापन कोड, ओटीपी, รหัสยืนยัน, รหัส otp, โอทีพี, mã xác nhận, mã xác thực, mã otp, κωδικός επαλήθευσης, doğrulama kodu, onay kodu, kode verifikasi, kode otp, kod weryfikacyjny, ověřovací kód, overovací kód, ellenőrző kód, cod de verificare, bekreftelseskode, engangskode, engångskod, verifieringskod, vahvistuskoodi",
    ),
    "password": (
        "密码, 登录密码, 口令, 初始密码, 密碼, 登入密碼, パスワード, 合言葉, 비밀번호, 비번, 패스워드, 암호, пароль, парола, лозинка, كلمة مرور, كلمة سر, رمز دخول, رمز عبور, گذرواژه, پسورد, کلمه عبور, סיסמה, סיסמא, पासवर्ड, कूटशब्द, รหัสผ่าน, พาสเวิร์ด, mật khẩu, κωδικός πρόσβασης, συνθηματικό, şifre, parola, kata sandi, sandi, kata laluan, hasło, heslo, jelszó, parolă, passord, adgangskode, kodeord, lösenord, salasana, lykilorð, lozinka, geslo, parool, slaptažodis",
    ),
    "postal code": (
        "邮编, 邮政编码, 郵遞區號, 郵編, 郵區編號, 郵便番号, 우편번호, 우편 번호, почтовый индекс, индекс, поштовий індекс, пощенски код, поштански број, رمز بريدي, صندوق بريد, کد پستی, کدپستی, מיקוד, पिन कोड, पिनकोड, डाक कोड, รหัสไปรษณีย์, mã bưu điện, mã bưu chính, ταχυδρομικός κώδικας, τ.κ, τκ, posta kodu, kode pos, poskod, kod pocztowy, psč, irányítószám, cod poștal, postnummer, postinumero, póstnúmer, poštanski broj, poštna številka",
    ),
    "home address": (
        "地址, 住址, 家庭住址, 家庭地址, 联系地址, 通讯地址, 收货地址, 收件地址, 户籍地址, 聯絡地址, 通訊地址, 戶籍地址, 住所, ご住所, 現住所, 自宅住所, 送付先住所, 주소, 집주소, 집 주소, 배송지, 배송 주소, 거주지, адрес, адрес проживания, адрес регистрации, домашний адрес, место жительства, прописка, адреса, адреса проживання, домашня адреса, місце проживання, адрес за доставка, постоянен адрес, адреса становања, пребивалиште, عنوان, عنوان سكن, محل إقامة, عنوان منزل, آدرس, نشانی, محل سکونت, כתובת, כתובת מגורים, पता, घर का पता, निवास, ที่อยู่, บ้านเลขที่, địa chỉ, nơi ở, địa chỉ nhà, διεύθυνση, διεύθυνση κατοικίας, ev adresi, ikametgah, alamat, alamat rumah, adres zamieszkania, bydliště, trvalé bydliště, bydlisko, lakcím, adresă, domiciliu, bostedsadresse, bopæl, bostadsadress, kotiosoite, osoite, heimilisfang, prebivalište, naslov bivališča",
    ),
    "full name": (
        "姓名, 真实姓名, 持卡人, 户名, 收件人, 联系人, 患者姓名, 客户姓名, 聯絡人, 戶名, 持卡人姓名, 氏名, ご氏名, フルネーム, 성명, 성함, 예금주, 수취인, фио, ф.и.о, имя и фамилия, фамилия имя отчество, піб, п.і.б, прізвище та ім я, име и фамилия, трите имена, име и презиме, اسم كامل, اسم رباعي, نام و نام خانوادگی, نام کامل, שם מלא, שם הלקוח, שם המטופל, पूरा नाम, ชื่อสกุล, ชื่อ สกุล, ชื่อนามสกุล, ชื่อ นามสกุล, họ tên, họ và tên, tên đầy đủ, ονοματεπώνυμο, ad soyad, adı soyadı, nama lengkap, imię i nazwisko, jméno a příjmení, meno a priezvisko, teljes név, nume și prenume, fullt navn, fulde navn, fullständigt namn, koko nimi, fullt nafn, ime i prezime, ime in priimek",
    ),
    "name": (
        "名字, お名前, 名前, 이름, имя, ім я, име, اسم, نام, שם, नाम, ชื่อ, tên, όνομα, isim, nama, imię, jméno, név, nume, navn, namn, nimi",
    ),
    "surname": (
        "姓氏, 苗字, фамилия, прізвище, фамилно име, презиме, اسم عائلة, لقب, نام خانوادگی, שם משפחה, उपनाम, นามสกุล, họ, επώνυμο, επίθετο, soyad, soyadı, soyisim, nama belakang, nama keluarga, nazwisko, příjmení, priezvisko, vezetéknév, családnév, nume de familie, etternavn, efternavn, efternamn, sukunimi, eftirnafn, prezime, priimek, perekonnanimi, uzvārds, pavardė",
    ),
    "user name": (
        "用户名, 登录名, 用户名称, 登录账号, 用户账号, 使用者名稱, 用戶名, 登入帳號, 使用者帳號, 微信号, QQ号, ユーザー名, ユーザーID, ログインID, ログイン名, 사용자명, 사용자 이름, 아이디, 로그인, 사용자ID, 사용자 ID, логин, имя пользователя, никнейм, логін, ім я користувача, потребителско име, корисничко име, اسم مستخدم, اسم مستعار, نام کاربری, שם משתמש, उपयोगकर्ता नाम, यूजरनेम, यूज़रनेम, ชื่อผู้ใช้, ยูสเซอร์เนม, ชื่อบัญชีผู้ใช้, tên đăng nhập, tên người dùng, όνομα χρήστη, kullanıcı adı, nama pengguna, nazwa użytkownika, uživatelské jméno, používateľské meno, felhasználónév, nume de utilizator, brukernavn, brugernavn, användarnamn, käyttäjätunnus, käyttäjänimi, notandanafn, korisničko ime, uporabniško ime, kasutajanimi, lietotājvārds",
    ),
    "license plate": (
        "车牌, 车牌号, 车牌号码, 车号, 車牌, 車牌號碼, 車牌號, ナンバープレート, 車両番号, 車のナンバー, 차량번호, 차량 번호, 차번호, 번호판, госномер, гос номер, номерной знак, номер машины, номер автомобиля, номер авто, держномер, номерний знак, регистрационен номер, рег номер, регистарски број, регистарска ознака, رقم لوحة, لوحة سيارة, رقم سيارة, رقم مركبة, پلاک, شماره پلاک, לוחית רישוי, מספר רכב, वाहन नंबर, वाहन संख्या, गाड़ी नंबर, गाड़ी का नंबर, ทะเบียนรถ, ป้ายทะเบียน, เลขทะเบียน, หมายเลขทะเบียน, biển số, biển số xe, bks, αριθμός κυκλοφορίας, πινακίδα, αρ κυκλοφορίας, plaka, plaka no, araç plakası, nomor polisi, nopol, plat nomor, numer rejestracyjny, nr rejestracyjny, tablica rejestracyjna, spz, registrační značka, státní poznávací značka, štátna poznávacia značka, rendszám, număr de înmatriculare, nr înmatriculare, registreringsnummer, nummerplade, rekisterinumero, rekisteritunnus, skráningarnúmer, registarska oznaka, registracija vozila, registrska številka",
    ),
    "vin": (
        "车架号, 车辆识别代号, 车辆识别码, 車架號碼, 車身號碼, 車台番号, 차대번호, вин номер, номер шасси, номер кузова, номер шасі, رقم هيكل, رقم شاسيه, شماره شاسی, מספר שלדה, चेसिस नंबर, หมายเลขตัวถัง, เลขตัวถัง, số khung, αριθμός πλαισίου, şasi no, şase no, nomor rangka, numer nadwozia, číslo karoserie, alvázszám, serie șasiu, understellsnummer, stelnummer, chassinummer, valmistenumero, broj šasije, številka šasije",
    ),
    "imei": (
        "设备识别码, 手机串号, 串号, 國際移動設備識別碼, 端末識別番号, 단말기식별번호, 단말기 고유번호, имей, имеи, رقم آيمي, سریال گوشی, ایمی",
    ),
    "serial number": (
        "序列号, 设备序列号, 序列號, シリアル番号, シリアルナンバー, 製造番号, 시리얼번호, 시리얼 번호, 일련번호, 제조번호, серийный номер, серійний номер, сериен номер, серијски број, رقم تسلسلي, شماره سریال, מספר סידורי, क्रम संख्या, सीरियल नंबर, หมายเลขเครื่อง, ซีเรียลนัมเบอร์, số sê-ri, số serial, σειριακός αριθμός, seri no, seri numarası, nomor seri, numer seryjny, sériové číslo, sorozatszám, număr de serie, serienummer, sarjanumero, serijski broj, serijska številka",
    ),
    "employee number": (
        "工号, 员工编号, 员工号, 职工号, 員工編號, 工號, 社員番号, 従業員番号, 職員番号, 사번, 사원번호, 사원 번호, 직원번호, 직원 번호, табельный номер, номер сотрудника, табельний номер, номер співробітника, служебен номер, број запосленог, رقم موظف, رقم وظيفي, شماره کارمندی, شماره پرسنلی, کد پرسنلی, מספר עובד, कर्मचारी संख्या, कर्मचारी आईडी, कर्मचारी कोड, รหัสพนักงาน, เลขประจำตัวพนักงาน, mã nhân viên, mã số nhân viên, αριθμός εργαζομένου, αριθμός μητρώου εργαζομένου, sicil no, personel no, personel numarası, nomor induk pegawai, nomor karyawan, id karyawan, numer pracownika, osobní číslo, číslo zaměstnance, číslo zamestnanca, törzsszám, dolgozói azonosító, marcă angajat, ansattnummer, medarbejdernummer, anställningsnummer, henkilönumero, broj zaposlenog",
    ),
    "customer number": (
        "客户编号, 客户号, 会员号, 会员卡号, 客戶編號, 會員編號, 會員號碼, 客戶號碼, 顧客番号, お客様番号, 会員番号, 고객번호, 고객 번호, 회원번호, 회원 번호, номер клиента, клиентский номер, номер клієнта, клиентски номер, број клијента, رقم عميل, رقم زبون, رقم عضوية, شماره مشتری, کد مشتری, شماره عضویت, מספר לקוח, מספר מנוי, ग्राहक संख्या, ग्राहक आईडी, ग्राहक नंबर, सदस्य संख्या, รหัสลูกค้า, หมายเลขลูกค้า, หมายเลขสมาชิก, รหัสสมาชิก, mã khách hàng, mã số khách hàng, αριθμός πελάτη, κωδικός πελάτη, müşteri no, müşteri numarası, nomor pelanggan, id pelanggan, no pelanggan, numer klienta, číslo zákazníka, zákaznické číslo, ügyfélszám, vevőkód, număr client, cod client, kundenummer, kundnummer, asiakasnumero, broj kupca, broj klijenta, številka stranke",
    ),
    "student number": (
        "学号, 學號, 学生证号, 学籍番号, 学生番号, 학번, 학생번호, студенческий билет, номер студенческого, зачетная книжка, студентський квиток, факултетен номер, број индекса, رقم جامعي, رقم طالب, شماره دانشجویی, מספר סטודנט, छात्र संख्या, अनुक्रमांक, รหัสนักศึกษา, รหัสนักเรียน, mã sinh viên, mssv, αριθμός μητρώου φοιτητή, öğrenci no, öğrenci numarası, nomor induk mahasiswa, numer albumu, numer indeksu, číslo studenta, neptun kód, număr matricol, studentnummer, opiskelijanumero",
    ),
    "contract number": (
        "合同编号, 合同号, 保单号, 保险单号, 合約編號, 保單號碼, 契約番号, 証券番号, 保険証券番号, 계약번호, 계약 번호, 증권번호, номер договора, номер договору, номер на договор, رقم عقد, رقم وثيقة, شماره قرارداد, מספר פוליסה, מספר חוזה, पॉलिसी नंबर, पॉलिसी संख्या, เลขที่กรมธรรม์, เลขกรมธรรม์, เลขที่สัญญา, số hợp đồng, αριθμός συμβολαίου, sözleşme no, nomor kontrak, numer umowy, číslo smlouvy, číslo zmluvy, szerződésszám, kötvényszám, număr contract, avtalenummer, avtalsnummer, sopimusnumero, broj ugovora",
    ),
    "age": (
        "年龄, 年齡, 年齢, 나이, 연령, возраст, вік, възраст, عمر, سن, גיל, आयु, उम्र, อายุ, tuổi, ηλικία, umur, wiek, věk, életkor, vârstă, ålder, ikä",
    ),
}
"""English words, as a detector of personal data knows them, and words of other languages that mean the same.

Words are parted by commas, and may have blanks themselves.
"""
