import { writeVectors } from './vectors/vector-files.js'

// Writes the golden vectors again. Read the diff: a changed answer is a changed contract.
writeVectors()
