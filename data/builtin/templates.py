"""The sentences of the built-in corpus: English, German, French, with slots.

The first letter is made a capital; French elides afterwards.
"""

_TEXT = """
{event} begins on {date}.
{event} beginnt am {date}.
{event} commence le {date}.

{event} on {day} takes place {place}.
{event} am {day} findet {place} statt.
{event} du {day} a lieu {place}.

{event} begins at {time} and lasts {duration}.
{event} beginnt um {time} und dauert {duration}.
{event} commence à {time} et dure {duration}.

on {day}, {event} begins at {time}.
am {day} beginnt {event} um {time}.
le {day}, {event} commence à {time}.

because {event} begins at {time}, {person} leaves at {time2}.
weil {event} um {time} beginnt, geht {person} um {time2} los.
comme {event} commence à {time}, {person} part à {time2}.

{person} says that {event} begins on {weekday} at {time}.
{person} sagt, dass {event} am {weekday} um {time} beginnt.
{person} dit que {event} commence {weekday} à {time}.

{vehicle} to {city} leaves at {time}.
{vehicle} nach {city} fährt um {time} ab.
{vehicle} pour {city} part à {time}.

{vehicle} from {city} arrives at {time}.
{vehicle} aus {city} kommt um {time} an.
{vehicle} de {city} arrive à {time}.

does {vehicle} to {city} leave at {time}?
fährt {vehicle} nach {city} um {time} ab?
est-ce que {vehicle} pour {city} part à {time} ?

on {weekday}, {vehicle} to {city} leaves at {time}.
am {weekday} fährt {vehicle} nach {city} um {time} ab.
{weekday}, {vehicle} pour {city} part à {time}.

{person} knows that {vehicle} to {city} takes {duration}.
{person} weiß, dass {vehicle} nach {city} {duration} braucht.
{person} sait que {vehicle} pour {city} met {duration}.

{shop} opens at {time} and closes at {time2}.
{shop} öffnet um {time} und schließt um {time2}.
{shop} ouvre à {time} et ferme à {time2}.

on {weekday}, {shop} closes at {time}.
am {weekday} schließt {shop} um {time}.
{weekday}, {shop} ferme à {time}.

{person} waited {place} for {duration}.
{person} hat {place} {duration} gewartet.
{person} a attendu {duration} {place}.

after {duration}, {person} found {item_object} {place}.
nach {duration_dative} hat {person} {item_object} {place} gefunden.
après {duration}, {person} a trouvé {item} {place}.

{person} has lived in {city} for {years}.
{person} wohnt seit {years_dative} in {city}.
{person} habite à {city} depuis {years}.

{item} costs {price}.
{item} kostet {price}.
{item} coûte {price}.

{person} paid {price} for {item}.
{person} hat {price} für {item_object} bezahlt.
{person} a payé {price} pour {item}.

in {year}, {item} cost {price}.
im Jahr {year} kostete {item} {price}.
en {year}, {item} coûtait {price}.

if {item} costs less than {price}, {person} will buy it.
wenn {item} weniger als {price} kostet, kauft {person} {pronoun}.
si {item} coûte moins de {price}, {person} l'achètera.

on {weekday}, {person} sold {item} for {price}.
am {weekday} hat {person} {item_object} für {price} verkauft.
{weekday}, {person} a vendu {item} pour {price}.

{person} {present} {count}.
{person} {present} {count}.
{person} {present} {count}.

{person} {past} {count} {place}.
{person} hat {place} {count} {past}.
{person} a {past} {count} {place}.

on {day}, {person} will {base} {count}.
am {day} wird {person} {count} {base}.
le {day}, {person} {future} {count}.

{person} wants to {base} {count} {place}.
{person} möchte {place} {count} {base}.
{person} veut {base} {count} {place}.

did {person} {base} {count} {place}?
hat {person} {place} {count} {past}?
est-ce que {person} a {past} {count} {place} ?

{person} says that {person2} {past} {count}.
{person} sagt, dass {person2} {count} {past} hat.
{person} dit que {person2} a {past} {count}.

{person} {past} {count}, and {person2} {past} {count2}.
{person} hat {count} {past}, und {person2} hat {count2} {past}.
{person} a {past} {count}, et {person2} a {past} {count2}.

{person} needs {weight} of {food}.
{person} braucht {weight} {food}.
{person} a besoin de {weight} de {food}.

{person} {past} {weight} of {food} {place}.
{person} hat {place} {weight} {food} {past}.
{person} a {past} {weight} de {food} {place}.

{weight} of {food} cost {price} today.
{weight} {food} kosten heute {price}.
{weight} de {food} coûtent {price} aujourd'hui.

the price of {food} rose by {percent}.
der Preis für {food} ist um {percent} gestiegen.
le prix des {food} a augmenté de {percent}.

it is {distance} from {city} to {city2}.
von {city} nach {city2} sind es {distance}.
il y a {distance} entre {city} et {city2}.

{number} people live in {city}.
in {city} leben {number} Menschen.
{number} personnes vivent à {city}.

in {year}, {number} people visited {shop}.
im Jahr {year} haben {number} Menschen {shop_object} besucht.
en {year}, {number} personnes ont visité {shop}.

{person}'s birthday is on {day}.
{person} hat am {day} Geburtstag.
l'anniversaire de {person} est le {day}.
"""

TEMPLATES: list[list[str]] = [
  block.splitlines() for block in _TEXT.strip().split("\n\n")
]
