# ruff: noqa: RUF001 - words and letters as their languages spell them
"""Words and ends of words by which nobody is called, in languages that the tagger knows less well.

Greetings and small words at the start of a sentence; words for institutions and places, which a name beside them only
distinguishes ("Hospital Santos Dumont"); ends of inflected nouns, which the names of that language never take.
"""

import re
from collections.abc import Callable
from functools import cache
from typing import Final

from app.engines.pii.names.language_words import WORDS

Kinds = Callable[[str], str]
"""Returns the letters of the lists that hold a word in small letters (`Gazetteer.kinds`)."""

_OPENERS: Final = {
    "pt": (
        "mas nessa nesse nessas nesses nesta neste nas num numa casa vinho obrigado obrigada olá caro "
        "cara prezado dos razão quanto quanta pior melhor curioso domingo segunda terça quarta quinta "
        "sexta sábado janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro "
        "dezembro"
    ),
    "ro": (
        "bună salut stimați stimate dragă duminică luni marți miercuri joi vineri sâmbătă mulțumim "
        "mulțumesc vă mâine"
    ),
    "tr": (
        "merhaba sayın sevgili selam yeni eski rus türk alman fransız ingiliz arap pazartesi salı "
        "çarşamba perşembe cuma cumartesi bazıları kendini konuşma günümüzde ingilizce almanca "
        "fransızca rusça arapça farsça türkçe italyanca ispanyolca yunanca japonca çince latince "
        "gürcüce islam ocak şubat mart nisan mayıs haziran temmuz ağustos eylül kasım aralık kara ak "
        "büyük küçük lütfen iyi kadın çocuk erkek tedavi siyah kırmızı mavi sarı meslek "
        "sinema tiyatro müzik edebiyat tarih veri bilgi sınıf kaynak özelde genelde gerçekte finalde "
        "özellikle çoğu hatta yani ayrıca ikiz kazı bağlı dönüşlü uzatma ek gerek fark "
        "yatırım antrenör yardımcı teknik başkan başkanı şampiyon şampiyonu ikinci birinci üçüncü "
        "milli millî ulusal yerel genel hukuk bilim dil dünya atmosfer dönem döneminde "
        "sözlük sözlüğü romanı kitabı polis asker ordu devlet halk köy kent ülke bölge "
        "bölgesi güneyli kuzeyli doğulu batılı hristiyan müslüman yahudi katolik ortodoks protestan "
        "budist hindu japon slav rum ermeni kürt çerkez laz moğol macar bulgar sırp hırvat boşnak "
        "arnavut gürcü leh çek fin kelt germen osmanlı selçuklu bizans abbasi emevi siyonizm budizm "
        "hristiyanlık müslümanlık yahudilik faşizm komünizm sosyalizm kapitalizm pinyin kanji enzim "
        "nikotin protein bakteri virüs bitki hayvan popüler klasik modern geleneksel tarafından "
        "futbol basketbol voleybol hakem kaleci forvet"
    ),
    "id": (
        "selamat halo hai terima mohon tolong yth salam dan kini neo filipina kristen kristiani islam "
        "hindu senin selasa rabu kamis jumat sabtu januari februari maret mei juni juli agustus oktober "
        "desember pagi siang sore malam harap pada bahasa ekonomi hukum pertanian sastra fisika kimia "
        "biologi matematika juara terbuka perairan tamu film raja ratu pangeran letnan kapten mayor "
        "kolonel jenderal satu dua tiga ahli madya kuno bersama menurut setelah sebelum ketika namun "
        "selain sejak tahun bulan hari kawasan daerah wilayah komite ketua wakil sekretaris bendahara "
        "silat budidaya manajemen presiden gubernur bupati walikota camat lurah wita wib wit"
    ),
    "hu": (
        "szia sziasztok helló üdv üdvözlettel kedves tisztelt drága kérem kérjük kérlek légyszi légyszí "
        "azon ezzel azzal ezen idén tavaly ráadásul végezetül végül egyébként persze továbbá "
        "köszi köszönöm köszönjük már jó hétfő kedd szerda csütörtök péntek szombat vasárnap tegnap "
        "holnap sajnos persze kösz rendben"
    ),
    "vi": (
        "xin mong chào kính thưa cảm cám nhờ vui trân thân dạ mình hôm ngày sáng chiều tối đơn máy cuộc "
        "hàng bên khi hẹn gửi hiện tuần tháng giá phòng việc nhà bọn chắc vâng ừ chúc quý hãy lúc phía dù "
        "tất rồi đừng nhớ"
    ),
    "no": (
        "hei hallo kjære takk vennlig mandag tirsdag onsdag torsdag fredag lørdag søndag beklager kanskje "
        "dessverre"
    ),
    "da": (
        "hej hallo kære tak venlig mandag tirsdag onsdag torsdag fredag lørdag søndag desværre måske hans "
        "hendes deres indien"
    ),
    "fi": (
        "tosi moni olin olen aiheena kuitenkin lisäksi toisaalta siksi hei moi terve kiitos terveisin "
        "maanantai tiistai keskiviikko torstai perjantai lauantai sunnuntai huomenna"
    ),
    "sv": (
        "hej hallå kära tack vänliga måndag tisdag onsdag torsdag fredag lördag söndag tyvärr kanske hans "
        "hennes"
    ),
    "cs": (
        "dobrý ahoj děkuji děkujeme vážený vážená milý milá pondělí úterý středa čtvrtek pátek sobota "
        "neděle zítra"
    ),
    "pl": (
        "dzień cześć witam dziękuję szanowny szanowna drogi droga poniedziałek wtorek środa czwartek "
        "piątek sobota jutro"
    ),
}
_NOUNS: Final = {
    "pt": (
        "hospital universidade banco partido museu igreja rio serra vila estádio teatro colégio escola "
        "instituto fundação clube prémio prêmio lei operação copa rodovia avenida rua praça bairro reino "
        "indústrias companhia câmara ministério palácio aeroporto ponte parque porto ilha ilhas editora "
        "grupo associação recursos santo santa"
    ),
    "ro": (
        "liceul liceului universitatea universității spitalul spitalului banca partidul partidului "
        "biserica muzeul teatrul colegiul institutul fundația râul muntele munții județul județului "
        "primăria ministerul guvernul guvernului consiliul regatul imperiul republica strada piața valea "
        "lacul insula camera camerei senatului senatul biroul defileul arenele treptele antic clubul "
        "echipa echipei stadionul orașul comuna satul parcul palatul castelul"
    ),
    "tr": (
        "kulübü devleti savaşı imparatorluğu kuvvetleri üniversitesi nehri partisi köyü ilçesi dağı gölü "
        "ili belediyesi kalesi camii kilisesi müzesi okulu lisesi derneği bankası hastanesi adası adaları "
        "denizi caddesi sokağı meydanı stadyumu takımı ligi kupası ödülü ödülleri dergisi gazetesi filmi "
        "albümü dizisi şirketi hanedanı beyliği krallığı cumhuriyeti bakanlığı konseyi meclisi "
        "komutanlığı tugayı katedral yüzyıl kanunu koridoru raporu antlaşması muharebesi şampiyonası "
        "federasyonu konfederasyonu merkezi müdürü antrenör ordusu ordu kolordusu alfabesi laboratuvarı "
        "tepesi türbesi evi bölgesi boğazı geçidi limanı körfezi yarımadası dünyası şovu yıldızı "
        "dengesi kökeni balesi operası senfonisi konçertosu tiyatrosu yüksekokulu kolej koleji idaresi "
        "müsteşarı başveziri türkolog şampiyonluğu turnuvası limited holding yatırım karolina carolina "
        "prensesi uydusu gezegeni dağ dağları mektubu yasası anayasası bildirgesi davası"
    ),
    "id": (
        "masjid ponpes pesantren menara sumur kodam sekolah gunung sungai pulau kota desa jalan "
        "universitas partai bank kabupaten provinsi kecamatan candi stasiun bandara pelabuhan rumah "
        "museum danau pantai taman pasar yayasan kerajaan kesultanan perguruan tinggi stadion gereja klub "
        "timnas kampung institut dinas badan komisi majelis dewan republik prefektur distrik kawedanan "
        "bahasa pura peron satuan piala liga studio hotel"
    ),
    "hu": (
        "utca út tér egyetem párt kórház múzeum folyó hegy megye iskola gimnázium templom színház bank "
        "híd sziget körút köz szövetség társaság egyesület alapítvány intézet műszaki kart"
    ),
    "no": (
        "kirke skole fjord universitet kommune fylke gate vei partiet klubben sykehus museum teater "
        "idrettslag kamp"
    ),
    "da": (
        "kirke skole fjord universitet kommune gade vej partiet klubben sygehus museum teater nat sider sankt"
    ),
    "sv": ("kyrka skola universitet kommun gata väg partiet klubben sjukhus museum teater sankt"),
    "fi": ("kirkko koulu yliopisto kunta katu tie puolue seura sairaala museo teatteri järvi joki"),
}
_ENDS: Final = {
    "tr": (
        "lerin ların leri ları lar ler lığı liği luğu lüğü lık lik luk lük erek arak ında inde unda "
        "ünde ımda imde mak mek yor reli calı esi ası ısı isi usu üsü"
    ),
    "ro": ("ului ilor elor ției iei ței țe ție"),
    "hu": ("ból ből ban ben ról ről nak nek ság ség val vel hoz hez"),
    "no": ("gata gaten veien vegen fjorden fjell skolen kirken parken partiet øya"),
    "da": ("gade vejen fjorden skolen kirken parken partiet bjerg skov"),
    "fi": ("ssa ssä sta stä lla llä lle katu joki järvi"),
}
_NOUN_FIRST: Final = frozenset({"pt", "ro", "id"})
"""Languages in which the noun stands before the name: "Hospital Dumont", not "Dumont kirke"."""

_NAMES_TAKE_ENDS: Final = frozenset({"hu", "fi"})
"""Languages whose names take the ends of nouns as well."""


_WORD: Final = re.compile(r"(?<![^\W\d_]['’])\b[^\W\d_]+")
"""A word without the end that an apostrophe sets off, as in Turkish."""

_TURKISH: Final = str.maketrans("Iİ", "ıi")


@cache
def _openers(code: str) -> frozenset[str]:
    return frozenset(WORDS.get(code, "").split()) | frozenset(_OPENERS.get(code, "").split())


@cache
def _nouns(code: str) -> frozenset[str]:
    return frozenset(_NOUNS.get(code, "").split())


@cache
def _ends(code: str) -> tuple[str, ...]:
    return tuple(_ENDS.get(code, "").split())


def is_nobody(name: str, code: str, kinds: Kinds) -> bool:
    """Return whether the supposed ``name`` is nobody's in the language ``code``."""
    words = [word.lower() for word in _WORD.findall(name.translate(_TURKISH) if code == "tr" else name)]
    if not words:
        return False
    if all(word in _openers(code) for word in words):
        return True
    if words[0 if code in _NOUN_FIRST else -1] in _nouns(code):
        return True
    last = words[-1]
    if not last.endswith(_ends(code)) or set("fl") & set(kinds(last)):
        return False
    return code not in _NAMES_TAKE_ENDS or "f" not in kinds(words[0])
