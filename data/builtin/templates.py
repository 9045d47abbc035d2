"""The sentences of the built-in corpus: English, German, French, with slots.

The first letter is made a capital; French elides and contracts afterwards.
"""

_TEXT = """
{event} begins on {date}.
{event} beginnt am {date}.
{event} commence le {date}.

{event} on {day} takes place {place}.
{event} am {day} findet {place} statt.
{event} du {day} a lieu {place}.

{event} begins at {time} and lasts {hours}.
{event} beginnt um {time} und dauert {hours}.
{event} commence à {time} et dure {hours}.

{event} begins on the {nth} at {time}.
{event} beginnt am {nth} um {time}.
{event} commence le {nth} à {time}.

on {day}, {event} begins at {time}.
am {day} beginnt {event} um {time}.
le {day}, {event} commence à {time}.

because {event} begins at {late}, {person} leaves at {early}.
weil {event} um {late} beginnt, geht {person} um {early} los.
comme {event} commence à {late}, {person} part à {early}.

{person} says that {event} begins on {weekday} at {time}.
{person} sagt, dass {event} am {weekday} um {time} beginnt.
{person} dit que {event} commence {weekday} à {time}.

{vehicle} to {city} leaves at {time}.
{vehicle} nach {city} fährt um {time} ab.
{vehicle} pour {city} part à {time}.

{vehicle} from {city} arrives at {clock} on {weekday}.
{vehicle} aus {city} kommt am {weekday} um {clock} an.
{vehicle} de {city} arrive {weekday} à {clock}.

does {vehicle} to {city} leave at {time}?
fährt {vehicle} nach {city} um {time} ab?
est-ce que {vehicle} pour {city} part à {time} ?

could you tell me whether {vehicle} to {city} leaves at {clock}?
könnten Sie mir sagen, ob {vehicle} nach {city} um {clock} abfährt?
pourriez-vous me dire si {vehicle} pour {city} part à {clock} ?

on {weekday}, {vehicle} to {city} leaves at {time}.
am {weekday} fährt {vehicle} nach {city} um {time} ab.
{weekday}, {vehicle} pour {city} part à {time}.

{person} knows that {vehicle} to {city} takes {hours}.
{person} weiß, dass {vehicle} nach {city} {hours} braucht.
{person} sait que {vehicle} pour {city} met {hours}.

{shop} opens at {early} and closes at {late}.
{shop} öffnet um {early} und schließt um {late}.
{shop} ouvre à {early} et ferme à {late}.

on {weekday}, {shop} closes at {time}.
am {weekday} schließt {shop} um {time}.
{weekday}, {shop} ferme à {time}.

{person} goes {shop_to} at {clock}.
{person} geht um {clock} {shop_to}.
{person} va {shop_to} à {clock}.

on {weekday}, {person} wakes up at {clock}.
am {weekday} wacht {person} um {clock} auf.
{weekday}, {person} se réveille à {clock}.

{person} waited {place} for {duration}.
{person} hat {place} {duration} gewartet.
{person} a attendu {duration} {place}.

please wait {place} for {hours}.
bitte warten Sie {place} {hours}.
veuillez attendre {hours} {place}.

after {duration}, {person} found {item_object} {place}.
nach {duration_dative} hat {person} {item_object} {place} gefunden.
après {duration}, {person} a trouvé {item_object} {place}.

{person} has lived in {city} for {years}.
{person} wohnt seit {years_dative} in {city}.
{person} habite à {city} depuis {years}.

{item} costs {price}, and {item2} costs {price2}.
{item} kostet {price}, und {item2} kostet {price2}.
{item} coûte {price}, et {item2} coûte {price2}.

{item} is {price} cheaper than {item2}.
{item} ist {price} billiger als {item2}.
{item} coûte {price} de moins que {item2}.

{person} paid {price} for {item_object}.
{person} hat {price} für {item_object} bezahlt.
{person} a payé {price} pour {item_object}.

in {year}, {item} cost {price}.
im Jahr {year} kostete {item} {price}.
en {year}, {item} coûtait {price}.

if {item} costs less than {price}, {person} will buy it.
wenn {item} weniger als {price} kostet, kauft {person} {item_pronoun}.
si {item} coûte moins de {price}, {person} l'achètera.

on {weekday}, {person} sold {item_object} for {price}.
am {weekday} hat {person} {item_object} für {price} verkauft.
{weekday}, {person} a vendu {item_object} pour {price}.

{person} is looking for {item_any} for less than {price}.
{person} sucht {item_any} für weniger als {price}.
{person} cherche {item_any} à moins de {price}.

I would like to buy {item_any} for {price}.
ich möchte {item_any} für {price} kaufen.
je voudrais acheter {item_any} pour {price}.

{person} bought {item_any} for {event}.
{person} hat für {event_object} {item_any} gekauft.
{person} a acheté {item_any} pour {event}.

on {day}, {person} gives {person2} {item_any}.
am {day} schenkt {person} {person2} {item_any}.
le {day}, {person} offre {item_any} à {person2}.

the price of {item_object} rose by {percent}.
der Preis für {item_object} ist um {percent} gestiegen.
le prix de {item_object} a augmenté de {percent}.

{person} {present} {count} {place}.
{person} {present} {place} {count}.
{person} {present} {count} {place}.

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

could you please {base} {count} {place}?
könnten Sie bitte {place} {count} {base}?
pourriez-vous {base} {count} {place}, s'il vous plaît ?

{person} says that {person2} {past} {count}.
{person} sagt, dass {person2} {count} {past} hat.
{person} dit que {person2} a {past} {count}.

{person} {past} {count}, and {person2} {past} {count2}.
{person} hat {count} {past}, und {person2} hat {count2} {past}.
{person} a {past} {count}, et {person2} a {past} {count2}.

the number {digits} is written {spelled}.
die Zahl {digits} schreibt man {spelled}.
le nombre {digits} s'écrit {spelled}.

{person} needs {weight} of {food} for {event}.
{person} braucht für {event_object} {weight} {food}.
{person} a besoin de {weight} de {food} pour {event}.

{person} {past} {weight} of {food} {place}.
{person} hat {place} {weight} {food} {past}.
{person} a {past} {weight} de {food} {place}.

{weight} of {food} cost {price} today.
{weight} {food} kosten heute {price}.
{weight} de {food} coûtent {price} aujourd'hui.

the price of {food} rose by {percent}.
der Preis für {food} ist um {percent} gestiegen.
le prix des {food} a augmenté de {percent}.

on {weekday}, it was {degrees} in {city}.
am {weekday} waren es in {city} {degrees}.
{weekday}, il faisait {degrees} à {city}.

it is {distance} from {city} to {city2}.
von {city} nach {city2} sind es {distance}.
il y a {distance} entre {city} et {city2}.

in {year}, {number} people lived in {city}.
im Jahr {year} lebten in {city} {number} Menschen.
en {year}, {number} personnes vivaient à {city}.

in {year}, {number} people visited {shop}.
im Jahr {year} haben {number} Menschen {shop_object} besucht.
en {year}, {number} personnes ont visité {shop}.

{person}'s birthday is on {day}, and {person2}'s is on {day2}.
{person} hat am {day} Geburtstag, und {person2} hat am {day2} Geburtstag.
l'anniversaire de {person} est le {day}, et celui de {person2} est le {day2}.
"""

TEMPLATES: list[list[str]] = [
  block.splitlines() for block in _TEXT.strip().split("\n\n")
]
