# ruff: noqa: RUF001 - words and letters as their languages spell them
"""Common words, ends of words, and letters by which languages in Latin script are told apart."""

from typing import Final

WORDS: Final = {
    "en": (
        "the and of to in is that for it with was on are this you be have not as at from by or we they which "
        "will an he she his her has had but would can do if been were there their what when who my your our "
        "me him them could should about out"
    ),
    "de": (
        "der die das und ist nicht ich sie wir ein eine zu den mit von für auf auch sich dem des wird bitte "
        "sind ihr im in es an als bei nach aus wie noch am um einen einer so hat habe aber oder nur werden "
        "war zum zur er über vor kann mir uns"
    ),
    "fr": (
        "le la les et est des une un du dans pour que qui pas vous nous je avec sur ce cette sont être mais "
        "au aux il elle par plus en se sa son ses ont été ou comme tout si nos votre leur fait même très bien "
        "aussi"
    ),
    "es": (
        "el la los las y es de que en un una por con para no se su del como pero más está al lo son muy hola "
        "usted fue ha sin sobre ya hasta desde también sus le me mi si ser este esta eso porque cuando todo "
        "hay han dos tras donde entre"
    ),
    "it": (
        "il la di che è e un una per non sono con del della dei delle gli nel si ho anche come ma alla questo "
        "più lo le i al da ha mi ci su se tra dal nella questa stato suo sua quando essere hanno molto tutti "
        "ed"
    ),
    "pt": (
        "o a os as e é de que em um uma para com não por se do da dos das no na mais como mas foi ao você são "
        "está eu à me já muito também meu minha ser tem seu sua ou quando isso ele ela pelo pela até sem só "
        "nos esse esta este depois entre era ter fazer nós"
    ),
    "nl": (
        "de het een en van is dat niet ik op te met voor zijn je aan er maar ook als bij naar wij deze heeft "
        "wordt om dan nog wat hij ze we uit over was door geen kan worden hebben mijn zou meer heb nu dit wel "
        "moet mag al hoe wanneer jullie onze"
    ),
    "sv": (
        "och att det som en är på för av med den inte jag till har ett om vi kan från var så de men sig man "
        "hade nu då eller ut när efter också mig bara ska där mot skulle min här mycket vara två ni er hur "
        "vad finns andra blir något över bli mer sedan"
    ),
    "da": (
        "og at det som en er på for af med den ikke jeg til har et om vi kan fra var hvad så de men sig man "
        "havde nu da eller ud når efter også mig kun skal der mod ville min her meget være to jer hvor "
        "hvordan blev bliver nogle noget over mere end jeres"
    ),
    "no": (
        "og at det som en er på for av med den ikke jeg til har et om vi kan fra var hva så de men seg man "
        "hadde nå da eller ut når etter også meg bare skal der mot ville min her mye være to dere hvor "
        "hvordan ble blir noen noe over mer enn eg ikkje ein eit frå dei vere òg kva vart blei"
    ),
    "pl": (
        "i w na nie się z że do jest to jak o po co ale dla przez od czy przy za tak już tylko może jego jej "
        "są był było tym ten ta też ich pan tego być który która które oraz lub bardzo jeszcze więcej mam mi "
        "mnie gdy kiedy pod bez proszę można ma będzie ze"
    ),
    "cs": (
        "a se v na že je s z do o to jako pro ale po jsem jsou by při také k ve si za tak už jen které který "
        "která jak co když od ze byl bylo byla nebo až jeho jejich mi mě ne má být není ještě kde tím však "
        "podle mezi dnes prosím můj vám vás nám jste jsme bych bude i u"
    ),
    "ro": (
        "și în nu la de un o cu pe că este sunt din pentru mai care dar am a al ale ai să se ce fi fost prin "
        "sau după ca au lui ei acest această acum așa când unde dacă fără aș ar îmi mi te vă le nici doar "
        "foarte tot toate ne noi avea era cele cel unei unui"
    ),
    "tr": (
        "ve bir bu için ile da de çok ne gibi daha ama olarak değil var kadar sonra o en her ya ki ben mi mı "
        "diye bana sen biz iki olan olduğu ise göre tarafından ancak şey yok hiç önce bunu nasıl zaman bütün "
        "kendi olduğunu fakat ayrıca veya içinde oldu hem arasında üzerinde bile şu yeni büyük ilk lütfen "
        "etti"
    ),
    "fi": (
        "ja on ei se että oli hän mutta ole kun joka tai niin myös sen olen kanssa kuin ovat jos mitä nyt "
        "sitä vain vielä jo minä hänen ne ollut voi sekä tämä sitten tämän siitä mukaan joita jotka miten "
        "minun en olisi kaikki hyvin koska siis kuitenkin jonka eivät jossa minulle me te oma jälkeen näin"
    ),
    "hu": (
        "a az és hogy nem is egy van meg de ezt csak már kell volt vagy mint ha azt még el ki mert ez én te "
        "mi ő sem lehet majd nagy be fel le úgy így itt ott ami aki amely akkor olyan után között vele neki "
        "lesz volna minden pedig amit több első szerint által ezért nagyon ne jó alatt"
    ),
    "id": (
        "yang dan di ini itu dengan untuk dari tidak dalam pada akan adalah saya ke ada juga oleh sebagai "
        "telah bisa atau kami kita mereka karena dapat lebih sudah seperti tersebut anda hanya belum saat ia "
        "dia namun tetapi menjadi secara bahwa para tahun apa kalau harus antara satu banyak setelah tak lagi "
        "ketika hingga"
    ),
    "vi": (
        "và của là có không cho được một những người trong với các này đã để tôi khi từ ra như thì đó về ở "
        "bạn nhưng vì cũng đến phải rất sẽ nhiều năm bị vào làm lại nếu còn ông trên sau theo tại hay cả hơn "
        "nó anh chị nào gì chúng mà đang hoặc nên trước giúp mới"
    ),
}
"""Small words of each language, which hardly any text does without."""

ENDINGS: Final = {
    "tr": (
        "lar ler dır dir dur dür tır tir nın nin nun nün ını ini unu ünü nda nde dan den arı eri ası esi ığı "
        "iği uğu üğü yor mak mek lık lik luk lük lan len dığ diğ mış miş muş müş acak ecek ıyor iyor lma lme "
        "arak erek"
    ),
    "fi": (
        "ssa ssä sta stä lla llä lta ltä lle iin een ään uun yyn nen sen ksi tta ttä vat vät aan oon nut nyt "
        "isi jen den ien uus yys ksen isen ista issa utta että inen"
    ),
    "hu": (
        "nak nek ban ben ról ről ból ből tól től val vel hoz hez höz ság ség ott ett ött tak tek ára ére ják "
        "eket okat ását ését ani eni ünk unk nál nél ként kor ás és"
    ),
    "id": "kan nya lah kah ngan gan tan ran man wan han aan ian uan nan",
    "pl": "ego emu ych ymi ach ość ści nia nie wać ała ały iej ami cie sze ćie wie dzi",
    "cs": "ého ému ých ými ích ách ost ení ání ské ský ská ami ali ala emi ech ové nou",
    "ro": "lor lui rea ile ele ată ate ilor ului esc ește ești iei eze ții ție ulu tul rii rul",
}
"""Ends of three or four letters of inflected words, which carry what small words do elsewhere."""

LETTERS: Final = {
    "cs": "ěřů",
    "hu": "őű",
    "pl": "łżźśćńęą",
    "ro": "țşșţă",
    "tr": "ğşıİ",
    "vi": "ơưđăạảấầẩẫậắằẳẵặẹẻẽếềểễệỉịọỏốồổỗộớờởỡợụủứừửữựỳỵỷỹ",
    "da": "æø",
    "no": "æø",
}
"""Letters of a language that no other one of `WORDS`, or few, writes."""
