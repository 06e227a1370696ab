// Catch2 brings main(); an executable needs a source.
