import { readdirSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { Document, LineCounter } from 'yaml'
import { readClients, readStop } from './clients.js'
import { CANDIDATE, type Config, DASHBOARD, LOG, type SETTINGS } from './config.js'
import { isDomain, readDomains } from './domains.js'
import { ConfigError, type Fault, fileError, unreadable } from './fault.js'
import { readListen } from './listen.js'
import { wholeOf } from './option.js'
import { parseYaml } from './parse-yaml.js'
import { readPolicies } from './policies.js'
import { readPrices } from './prices.js'
import { PROCESSES } from './processes.js'
import { readQuotas } from './quotas.js'
import { readText } from './read-file.js'
import { readStep } from './read-steps.js'
import { Section, type Source } from './section.js'
import { SNAPSHOT } from './snapshot.js'
import { readStorage } from './storage.js'
import { THROTTLE } from './table-size.js'
import { readTls, TLS, type TlsConfig, type TlsFault } from './tls.js'
import { readTokens } from './tokens.js'
import { readWebhook } from './webhook.js'

/** Far above any real file; a larger one is a mistake in the path. */
const MAX_FILE_CHARACTERS = 1_000_000
/** UTF-8 has at most three bytes for what counts as a character here. */
const MAX_FILE_BYTES = 3 * MAX_FILE_CHARACTERS
const MAX_FILES = 1_000
/** Of all files of a folder. */
const MAX_CHARACTERS = 16_000_000
const YAML_FILE = /^[^.].*\.ya?ml$/i

/** A file and its text. */
export interface ConfigFile {
  readonly file: string
  readonly text: string
}

/** What a reload goes on with where a file cannot be used at the moment. */
export interface Known {
  readonly tls?: TlsConfig | undefined
}

/**
 * The configuration in `path`: a file, or a folder, whose files ending in `.yaml` or `.yml` are read together. A file with `domain` and
 * `descriptors` is in the form of Envoy's rate limit service; one with `policies`, and settings of the service, in our own.
 *
 * @throws {ConfigError} with every fault that was found, each with its file, line and column.
 */
export function readConfig(path: string, before: Known = {}): Config {
  return parseFiles(configFiles(path), before)
}

/** The files of {@link filesOf} with their texts. */
export function configFiles(path: string): ConfigFile[] {
  let characters = 0
  return filesOf(path).map((file) => {
    const text = readText(file, MAX_FILE_BYTES)
    characters += text.length
    if (characters > MAX_CHARACTERS) throw fileError(path, `has files of more than ${MAX_CHARACTERS} characters in all`)
    return { file, text }
  })
}

/** The files of which the configuration in `path` consists, in the order of their names. */
export function filesOf(path: string): string[] {
  const isFolder = attempt(path, () => statSync(path).isDirectory())
  if (!isFolder) return [path]
  const named = filesIn(
    path,
    attempt(path, () => readdirSync(path)),
  )
  const files = named.filter((file) => attempt(file, () => !statSync(file).isDirectory()))
  if (files.length === 0) throw fileError(path, 'has no files that end in .yaml or .yml')
  if (files.length > MAX_FILES) throw fileError(path, `has ${files.length} files, and ${MAX_FILES} are the most`)
  return files.sort()
}

/** Of all that a folder contains what by its name is a file of a configuration. */
export function filesIn(folder: string, names: readonly string[]): string[] {
  return names.filter((name) => YAML_FILE.test(name)).map((name) => join(folder, name))
}

/**
 * The configuration in `text`, YAML 1.2; `file` is its name in messages.
 *
 * @throws {ConfigError} with every fault that was found, each with its line and column.
 */
export function parseConfig(text: string, file = 'config'): Config {
  return parseFiles([{ file, text }])
}

/** The configuration in files that were read before, as `readConfig` does. */
export function parseFiles(files: readonly ConfigFile[], before: Known = {}): Config {
  const faults: Fault[] = []
  const sources = files.map((each) => parseFile(each, faults))
  // After a syntax error the rest of the file would cause faults that are no faults.
  if (faults.length > 0) throw new ConfigError(inOrder(faults))
  const config = readSources(sources, before)
  if (faults.length > 0) throw new ConfigError(inOrder(faults))
  return config
}

function parseFile({ file, text }: ConfigFile, faults: Fault[]): Source {
  if (text.length > MAX_FILE_CHARACTERS) throw fileError(file, `is larger than ${MAX_FILE_CHARACTERS} characters: is it the right file?`)
  return parseYaml(file, text, faults)
}

function readSources(sources: readonly Source[], before: Known): Config {
  const roots = sources.map((source) => new Section(source, source.document.contents))
  const own = roots.filter((root) => !isDomain(root))
  const domains = readDomains(
    roots.filter(isDomain),
    own.flatMap((root) => root.namesUnder('policies')),
  )
  const settings = settingsOf(own)
  const policies = readPolicies(own, own.length === roots.length)
  const config = {
    listen: readListen(settings('listen').section('listen')),
    tls: readTlsSection(settings('tls'), before.tls),
    tokens: readTokens(settings('tokens')),
    clients: readClients(settings('clients').section('clients')),
    stop: readStop(settings('stop').section('stop')),
    storage: readStorage(filled(settings('storage'), 'storage')),
    policies,
    domains,
    throttle: wholeOf(settings('throttle').section('throttle'), THROTTLE),
    ...readQuotas(settings('quotas').section('quotas'), policies),
    prices: readPrices(settings('prices')),
    dashboard: wholeOf(settings('dashboard').section('dashboard'), DASHBOARD),
    log: wholeOf(settings('log').section('log'), LOG),
    snapshot: wholeOf(filled(settings('snapshot'), 'snapshot'), SNAPSHOT),
    processes: PROCESSES.processes.read(settings('processes')),
    threads: PROCESSES.threads.read(settings('threads')),
    candidate: readCandidate(settings('candidate')),
    webhook: readWebhook(settings('webhook')),
  }
  for (const section of own) section.done()
  return config
}

/** The root that has a setting. A setting in two files is a fault: their order would decide. */
function settingsOf(roots: readonly Section[]): (setting: (typeof SETTINGS)[number]) => Section {
  return (setting) => {
    const [first, ...more] = roots.filter((root) => root.has(setting))
    for (const root of more) root.nameFault(setting, `is in ${first?.file} already: write it in one file`)
    return first ?? roots[0] ?? new Section(NO_SOURCE, undefined)
  }
}

/** A section with nothing in it, as a template without its values makes one, would be a service without certificates, or alone with its budgets. */
function filled(root: Section, setting: 'tls' | 'storage' | 'snapshot'): Section {
  const before = root.faultCount
  const section = root.section(setting)
  if (root.has(setting) && root.faultCount === before && section.names().length === 0)
    root.fault(setting, 'has nothing in it: fill it in, or leave it out')
  return section
}

const NO_SOURCE: Source = { file: '', document: new Document(), lines: new LineCounter(), faults: [] }

/** Relative to the file that names it. */
function readCandidate(root: Section): string | undefined {
  const path = CANDIDATE.read(root)
  return path === undefined ? undefined : resolve(dirname(root.file), path)
}

function readTlsSection(root: Section, before: TlsConfig | undefined): TlsConfig | undefined {
  const section = filled(root, 'tls')
  const files = wholeOf(section, TLS)
  const fault: TlsFault = (option, reason) => section.fault(TLS[option].name, reason)
  return readTls(files, dirname(root.file), fault, before)
}

function attempt<Result>(file: string, read: () => Result): Result {
  try {
    return readStep(file, read)
  } catch (error) {
    throw error instanceof ConfigError ? error : unreadable(file, error)
  }
}

function inOrder(faults: readonly Fault[]): Fault[] {
  return [...faults].sort((a, b) => (a.file < b.file ? -1 : a.file > b.file ? 1 : a.line - b.line || a.column - b.column))
}
