import { type Stats, statSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { ConfigError, type Fault, fileError } from '../fault.js'
import { parseYaml } from '../parse-yaml.js'
import { readText } from '../read-file.js'
import { readStep } from '../read-steps.js'
import { Section } from '../section.js'
import { TierData } from './tier-data.js'
import { readKeys } from './tier-keys.js'
import { type RowFault, readCsv, readJson } from './tier-rows.js'

const MAX_BYTES = 128 * 2 ** 20
/** A file as it was read, and what tells it from later ones. */
export interface KnownTierFile {
  readonly signature: string
  readonly data: TierData
}

/** YAML takes about fifty times as long to read. */
const MAX_YAML_CHARACTERS = 1_000_000
/** A changed configuration does not read again what has not changed. */
const readBefore = new Map<string, KnownTierFile>()
/** A file of a million rows may have a fault in each. */
const MAX_FAULTS = 100

/**
 * The keys in a data file, by its ending: `.csv`, `.json`, `.yaml` or `.yml`.
 *
 * @throws {ConfigError} with the faults that were found, at most 100, each with its line and column.
 */
export function readTierFile(file: string): TierData {
  const signature = signatureOf(file)
  const known = readBefore.get(file)
  if (known?.signature === signature) return known.data
  const reading = rowsOf(file)
  for (;;) {
    const { done, value } = reading.next()
    if (!done) continue
    readBefore.set(file, { signature, data: value })
    return value
  }
}

/** The last reading of each file: one that has not changed since is not read again. */
export function knownTierFiles(): IterableIterator<readonly [file: string, known: KnownTierFile]> {
  return readBefore.entries()
}

/** Makes the reading of another thread the last one of this. */
export function knowTierFile(file: string, known: KnownTierFile): void {
  readBefore.set(file, known)
}

/** What changes with every change of the file. */
export function signatureOf(file: string): string {
  try {
    return signatureIn(
      file,
      readStep(file, () => statSync(file)),
    )
  } catch (error) {
    return String(error)
  }
}

/** The same beside this thread: a folder over a network may not answer. */
export async function signatureNow(file: string): Promise<string> {
  try {
    return signatureIn(file, await stat(file))
  } catch (error) {
    return String(error)
  }
}

function signatureIn(file: string, { ino, size, mtimeMs, ctimeMs }: Stats): string {
  return [file, ino, size, mtimeMs, ctimeMs].join()
}

function* rowsOf(file: string): Generator<void, TierData> {
  const text = readText(file, MAX_BYTES)
  if (text.trim() === '') throw empty(file)
  const data = new TierData()
  const faults: Fault[] = []
  const fault: RowFault = (line, column, reason) => {
    faults.push({ file, line, column, path: '', reason })
    if (faults.length >= MAX_FAULTS) throw new ConfigError(faults)
  }
  if (/\.ya?ml$/i.test(file)) readYaml(file, text, data, faults)
  else if (/\.json$/i.test(file)) yield* readJson(text, data, fault)
  else if (/\.csv$/i.test(file)) yield* readCsv(text, data, fault)
  else throw fileError(file, 'must end in .csv, .json, .yaml or .yml, which says how it is read')
  if (faults.length > 0) throw new ConfigError(faults)
  return data
}

/** As one is while its writer begins, or after a disk was full: every key would be without its tier. */
function empty(file: string): ConfigError {
  return fileError(file, 'is an empty file; where no key has a tier, write {}, or of a CSV the line with the columns')
}

function readYaml(file: string, text: string, data: TierData, faults: Fault[]): void {
  if (text.length > MAX_YAML_CHARACTERS)
    throw fileError(file, `has more than ${MAX_YAML_CHARACTERS} characters: use CSV or JSON, which are read in a fraction of the time`)
  const source = parseYaml(file, text, faults)
  if (source.document.contents === null) throw empty(file)
  if (faults.length === 0) readKeys(new Section(source, source.document.contents), data)
}
