"""The built-in corpus: generated sentences in English, German and French.

They say dates, times, durations, amounts, prices and numbers, the way each
language writes them (Unicode CLDR, through Babel) inside sentences of a small
grammar. Nothing is downloaded.
"""
