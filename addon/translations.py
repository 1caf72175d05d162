"""Words in other languages: {locale: {(context, English): text}}. Blender looks labels and tooltips up in here; a language
is added by adding its dictionary."""
import bpy

_FR = {
    "Toile Garment": "Vêtement Toile", "Toile Collider": "Collisionneur Toile", "Fabric": "Tissu", "Bake": "Calculer",
    "Cancel": "Annuler", "Resume": "Reprendre", "Free": "Libérer", "Thickness": "Épaisseur", "Friction": "Friction",
    "Pin Group": "Groupe d'épingles", "Rest Shape": "Forme au repos", "Versions": "Versions", "Statistics": "Statistiques",
    "Stretch": "Étirement", "Contacts": "Contacts", "Cache": "Cache", "Export": "Exporter", "Gravity": "Gravité",
    "Wind": "Vent", "Density": "Densité", "Cloth thickness": "Épaisseur du tissu", "Threads": "Fils d'exécution",
}
_DE = {
    "Toile Garment": "Toile-Kleidung", "Toile Collider": "Toile-Kollision", "Fabric": "Stoff", "Bake": "Berechnen",
    "Cancel": "Abbrechen", "Resume": "Fortsetzen", "Free": "Freigeben", "Thickness": "Dicke", "Friction": "Reibung",
    "Pin Group": "Haltegruppe", "Rest Shape": "Ruheform", "Versions": "Versionen", "Statistics": "Statistik",
    "Stretch": "Dehnung", "Contacts": "Kontakte", "Cache": "Cache", "Export": "Exportieren", "Gravity": "Schwerkraft",
    "Wind": "Wind", "Density": "Dichte", "Cloth thickness": "Stoffdicke", "Threads": "Threads",
}


def _dictionary(words):
    # operators have a context of their own
    return {(context, english): text for english, text in words.items() for context in ("*", "Operator")}


def register():
    bpy.app.translations.register(__package__, {"fr_FR": _dictionary(_FR), "de_DE": _dictionary(_DE)})


def unregister():
    bpy.app.translations.unregister(__package__)
