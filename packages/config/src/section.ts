import { type Alias, type Document, isAlias, isMap, isScalar, isSeq, type LineCounter, type Node, visit, type YAMLMap } from 'yaml'
import type { Fault } from './fault.js'
import { type ListenAddress, parseListenAddress } from './listen-address.js'
import { didYouMean } from './spelling.js'
import { timeSpanMs, timeSpanText } from './time-span.js'

/** The parsed file, and where the faults found in it are collected. */
export interface Source {
  readonly file: string
  readonly document: Document
  readonly lines: LineCounter
  readonly faults: Fault[]
}

/** An option's name and value as they stand in the file. */
interface Entry {
  readonly keyNode: Node | undefined
  readonly valueNode: Node | undefined
}

/** The most faults of a file; what they are about is seen by then. */
const MAX_FAULTS = 1_000
/** The most options that `<<` takes over in a file: each place that merges a mapping takes the time of the whole mapping. */
const MAX_MERGED = 100_000
/** How often the value of an alias may be repeated, by aliases in it: each level multiplies. */
const MAX_ALIAS_COUNT = 100
/** A name that needs no quotes in a path. */
const PLAIN_NAME = /^[\w-]+$/

/**
 * A mapping of the file, read option by option. Nothing here throws: a wrong value becomes a fault at its place and
 * reads as undefined, so that one pass finds all faults. An option that was never read is unknown, and {@link Section.done} reports it.
 */
export class Section {
  readonly path: string
  readonly #source: Source
  /** The place of faults of the whole section: its name where it has one, since an empty section has no other text. */
  readonly #place: Node | undefined
  readonly #entries = new Map<string, Entry>()
  readonly #known = new Set<string>()
  readonly #sections = new Map<string, Section>()
  /** False for a value that is no mapping, which gets that one fault and no others. */
  #isMapping = true

  constructor(source: Source, node: unknown, path = '', name?: Node) {
    this.#source = source
    this.path = path
    this.#place = name ?? (node as Node | null) ?? undefined
    const target = resolved(source, node)
    if (isMap(target)) this.#read(target)
    else if (target !== undefined) {
      this.#isMapping = false
      this.#fault(node as Node, path, `must be a mapping of options, not ${describe(target)}`)
    }
  }

  /** Whether it is a mapping. Anything else has one fault, and no options. */
  get isMapping(): boolean {
    return this.#isMapping
  }

  get file(): string {
    return this.#source.file
  }

  /** Faults of the file so far. */
  get faultCount(): number {
    return this.#source.faults.length
  }

  /** Records faults that were found elsewhere, for example in a file that this one names. */
  addFaults(faults: readonly Fault[]): void {
    this.#source.faults.push(...faults)
  }

  /** The place of an option's name, from 1. */
  placeOf(option: string): { readonly line: number; readonly column: number } {
    const { line, col } = this.#source.lines.linePos(this.#entries.get(option)?.keyNode?.range?.[0] ?? 0)
    return { line: Math.max(1, line), column: Math.max(1, col) }
  }

  /** Names of all options present, in the file's order. */
  names(): string[] {
    return [...this.#entries.keys()]
  }

  has(option: string): boolean {
    this.#known.add(option)
    return this.#entries.has(option)
  }

  /** Names in the mapping under `option`; none where it is no mapping, which is not recorded here. */
  namesUnder(option: string): string[] {
    const target = resolved(this.#source, this.#entries.get(option)?.valueNode)
    return isMap(target) ? target.items.map(({ key }) => (isScalar(key) ? String(key.value) : String(key))) : []
  }

  /** Whether `option` has a value; an option with nothing behind it has none. */
  isGiven(option: string): boolean {
    this.#known.add(option)
    return resolved(this.#source, this.#entries.get(option)?.valueNode) !== undefined
  }

  /** Records a fault where `option` is left out; `what` says what it is, where its name does not. */
  require(option: string, what = ''): void {
    if (this.#isMapping && !this.has(option)) this.fault(option, `is missing${what}`)
  }

  /** The mapping under `option`; an empty one when it is left out. */
  section(option: string): Section {
    this.#known.add(option)
    // One section for several readers, so that its faults are recorded once.
    const known = this.#sections.get(option)
    if (known !== undefined) return known
    const { keyNode, valueNode } = this.#entries.get(option) ?? {}
    const section = new Section(this.#source, valueNode, this.#pathOf(option), keyNode)
    this.#sections.set(option, section)
    return section
  }

  /** The mappings of the list under `option`; undefined when it is left out, or no list. */
  list(option: string, what: string): Section[] | undefined {
    this.#known.add(option)
    const list = resolved(this.#source, this.#entries.get(option)?.valueNode)
    if (isSeq(list)) return list.items.map((item, i) => new Section(this.#source, item, `${this.#pathOf(option)}[${i}]`))
    if (this.#entries.has(option)) this.fault(option, `must be a list of ${what}, not ${describe(list)}`)
    return undefined
  }

  /** The scalar value of any type; undefined for anything else. */
  written(option: string): unknown {
    this.#known.add(option)
    return this.#scalar(option)
  }

  /** A number as written. The policy checks its range. */
  number(option: string): number | undefined {
    return this.#value(option, (value) => typeof value === 'number', 'a number, for example 100')
  }

  integer(option: string, min: number, max: number): number | undefined {
    const fits = (value: unknown): boolean => Number.isInteger(value) && (value as number) >= min && (value as number) <= max
    return this.#value(option, fits, `an integer from ${min} to ${max}`)
  }

  /** An integer, or one word instead. */
  integerOr<Word extends string>(option: string, word: Word, min: number, max: number): number | Word | undefined {
    const fits = (value: unknown): boolean =>
      value === word || (Number.isInteger(value) && (value as number) >= min && (value as number) <= max)
    return this.#value(option, fits, `${word}, or an integer from ${min} to ${max}`)
  }

  text(option: string, example: string): string | undefined {
    return this.#value(option, (value) => typeof value === 'string' && value !== '', `a text, for example ${example}`)
  }

  /** A text that no message repeats. */
  secret(option: string): string | undefined {
    this.#known.add(option)
    if (!this.#entries.has(option)) return undefined
    const value = this.#scalar(option)
    if (typeof value === 'string' && value !== '') return value
    this.fault(option, 'must be a text; put quotes around one that looks like a number')
    return undefined
  }

  /** The texts of the list under `option`, which no message repeats. */
  secrets(option: string, what: string): string[] | undefined {
    this.#known.add(option)
    if (!this.#entries.has(option)) return undefined
    const list = resolved(this.#source, this.#entries.get(option)?.valueNode)
    const texts = isSeq(list) ? list.items.map((item) => resolved(this.#source, item)) : []
    const values = texts.flatMap((node) => (isScalar(node) && typeof node.value === 'string' ? [node.value] : []))
    if (isSeq(list) && values.length === texts.length) return values
    this.fault(option, `must be a list of ${what}`)
    return undefined
  }

  /** The texts of the list under `option`; undefined when it is left out, or no such list. */
  texts(option: string, what: string): string[] | undefined {
    return this.secrets(option, what)
  }

  /** Where to listen; undefined for `off` and for a fault, and when it is left out. */
  address(option: string): ListenAddress | undefined {
    const text = this.text(option, '127.0.0.1:8080, unix:/run/sluicegate.sock or off')
    if (text === undefined) return undefined
    try {
      return parseListenAddress(text)
    } catch (error) {
      this.fault(option, (error as Error).message)
      return undefined
    }
  }

  boolean(option: string): boolean | undefined {
    return this.#value(option, (value) => typeof value === 'boolean', 'true or false')
  }

  /** The milliseconds of a text with a unit. */
  duration(option: string, minMs: number, maxMs: number): number | undefined {
    const fits = (value: unknown): boolean => {
      const ms = typeof value === 'string' ? timeSpanMs(value) : undefined
      return ms !== undefined && ms >= minMs && ms <= maxMs
    }
    const wanted = `a time with a unit from ${timeSpanText(minMs)} to ${timeSpanText(maxMs)}, for example 5s`
    const text = this.#value<string>(option, fits, wanted)
    return text === undefined ? undefined : timeSpanMs(text)
  }

  /** A text, or a number or boolean as it is written: the type that YAML gives a label does not matter. */
  label(option: string, example: string): string | undefined {
    const fits = (value: unknown): boolean => ['string', 'number', 'bigint', 'boolean'].includes(typeof value)
    const value = this.#value<string | number | bigint | boolean>(option, fits, `a text, for example ${example}`)
    const node = resolved(this.#source, this.#entries.get(option)?.valueNode)
    if (value === undefined || typeof value === 'string' || !isScalar(node)) return value as string | undefined
    return node.source ?? String(value)
  }

  /** A boolean in each spelling of YAML 1.1, which the tools that read Envoy's files use. */
  flag(option: string): boolean | undefined {
    const value = this.#value<string | boolean>(option, (value) => flagOf(value) !== undefined, 'true or false')
    return flagOf(value)
  }

  /** The value under `option` as plain data, without checks; undefined when it is left out. */
  plain(option: string): unknown {
    this.#known.add(option)
    const node = resolved(this.#source, this.#entries.get(option)?.valueNode)
    try {
      const value: unknown = node?.toJS(this.#source.document, { maxAliasCount: MAX_ALIAS_COUNT })
      // A value that contains itself could be written in no answer.
      JSON.stringify(value)
      return value
    } catch (error) {
      // The parser's ReferenceError for aliases of aliases, a TypeError for a circle, or a RangeError for a value that is too deep.
      if (!(error instanceof ReferenceError || error instanceof TypeError || error instanceof RangeError)) throw error
      this.fault(option, 'must be plain data: its aliases repeat too much of it, or it contains itself')
      return undefined
    }
  }

  oneOf<Choice extends string | number>(option: string, choices: readonly Choice[]): Choice | undefined {
    return this.#value(
      option,
      (value) => choices.includes(value as Choice),
      listed(choices, 'or'),
      (value) => (typeof value === 'string' ? didYouMean(value, choices.map(String)) : ''),
    )
  }

  /** Records a fault at `option`'s value, at its name, or at this section where it is left out. */
  fault(option: string, reason: string): void {
    const { keyNode, valueNode } = this.#entries.get(option) ?? {}
    this.#fault(valueNode ?? keyNode ?? this.#place, this.#pathOf(option), reason)
  }

  /** Records a fault at `option`'s name. */
  nameFault(option: string, reason: string): void {
    this.#fault(this.#entries.get(option)?.keyNode, this.#pathOf(option), reason)
  }

  /** Records a fault for each option that was never read; `belongs` may say where the option would be valid. */
  done(belongs: (option: string) => string | undefined = () => undefined): void {
    for (const option of this.#entries.keys()) {
      if (this.#known.has(option)) continue
      if (this.faultCount > MAX_FAULTS) return
      const missing = [...this.#known].filter((known) => !this.#entries.has(known))
      const guess = didYouMean(option, missing)
      this.nameFault(option, belongs(option) ?? `unknown option${guess || `; there are ${[...this.#known].join(', ')}`}`)
    }
  }

  /** Adds up what the file takes over by `<<`. False after a fault. */
  #canMerge(key: Node, options: number): boolean {
    const known = linksOf(this.#source.document)
    if (known.merged > MAX_MERGED) return false
    known.merged += options
    if (known.merged <= MAX_MERGED) return true
    this.#fault(key, this.#pathOf('<<'), `takes over more than ${MAX_MERGED} options in this file: merge smaller mappings`)
    return false
  }

  #read(map: YAMLMap): void {
    for (const { key, value } of map.items) {
      const name = isScalar(key) ? String(key.value) : String(key)
      if (name === '<<') continue
      // The parser finds equal keys; 1 and "1" differ to YAML and are one name here.
      if (this.#entries.has(name)) this.#fault((key as Node | null) ?? undefined, this.#pathOf(name), 'is given more than once')
      this.#entries.set(name, { keyNode: (key as Node | null) ?? undefined, valueNode: (value as Node | null) ?? undefined })
    }
    for (const { key, value } of map.items) if (isScalar(key) && key.value === '<<') this.#merge(key, value as Node | null)
  }

  /** The options of one mapping, or of several, that are left out here: what YAML 1.1 means by `<<`. */
  #merge(key: Node, value: Node | null): void {
    const target = resolved(this.#source, value)
    const maps = isSeq(target) ? target.items.map((item) => resolved(this.#source, item)) : [target]
    if (!maps.every((map) => isMap(map))) {
      this.#fault(value ?? key, this.#pathOf('<<'), 'must be a mapping, or a list of mappings, whose options are taken over')
      return
    }
    for (const map of maps as YAMLMap[]) {
      if (!this.#canMerge(key, map.items.length)) return
      for (const { key, value } of map.items) {
        const name = isScalar(key) ? String(key.value) : String(key)
        if (name === '<<' || this.#entries.has(name)) continue
        this.#entries.set(name, { keyNode: (key as Node | null) ?? undefined, valueNode: (value as Node | null) ?? undefined })
      }
    }
  }

  #value<Value>(option: string, fits: (value: unknown) => boolean, wanted: string, hint = (_: unknown): string => ''): Value | undefined {
    this.#known.add(option)
    const entry = this.#entries.get(option)
    if (entry === undefined) return undefined
    const value = this.#scalar(option)
    if (fits(value)) return value as Value
    this.fault(option, `must be ${wanted}, not ${describe(resolved(this.#source, entry.valueNode))}${hint(value)}`)
    return undefined
  }

  #scalar(option: string): unknown {
    const node = resolved(this.#source, this.#entries.get(option)?.valueNode)
    return isScalar(node) ? node.value : undefined
  }

  #pathOf(option: string): string {
    const name = PLAIN_NAME.test(option) ? option : JSON.stringify(option)
    return this.path === '' ? name : `${this.path}.${name}`
  }

  #fault(node: Node | undefined, path: string, reason: string): void {
    if (this.faultCount > MAX_FAULTS) return
    const { line, col } = this.#source.lines.linePos(node?.range?.[0] ?? 0)
    const place = { file: this.#source.file, line: Math.max(1, line), column: Math.max(1, col) }
    if (this.faultCount < MAX_FAULTS) this.#source.faults.push({ ...place, path, reason })
    else this.#source.faults.push({ ...place, path: '', reason: `there are more than ${MAX_FAULTS} faults: no more are listed` })
  }
}

/** `a, b or c`. */
export function listed(words: readonly (string | number)[], last: 'and' | 'or'): string {
  return words.length < 2 ? words.join() : `${words.slice(0, -1).join(', ')} ${last} ${words.at(-1)}`
}

function flagOf(value: unknown): boolean | undefined {
  if (typeof value === 'boolean') return value
  if (typeof value !== 'string') return undefined
  return /^(y|yes|on|true)$/i.test(value) ? true : /^(n|no|off|false)$/i.test(value) ? false : undefined
}

/** The node itself, or the one that an alias stands for; undefined for nothing at all and for an explicit null. */
function resolved(source: Source, node: unknown): Node | undefined {
  const target = isAlias(node) ? linksOf(source.document).targets.get(node) : (node as Node | null)
  return target == null || (isScalar(target) && target.value === null) ? undefined : (target as Node)
}

function describe(node: Node | undefined): string {
  if (node === undefined) return 'nothing'
  if (!isScalar(node)) return isMap(node) ? 'a mapping' : 'a list'
  const shown = JSON.stringify(node.value) ?? String(node.value)
  return shown.length > 60 ? `${shown.slice(0, 60)}...` : shown
}

/** What the aliases of a document stand for. */
interface Links {
  readonly targets: ReadonlyMap<Alias, Node>
  /** Options that were taken over by `<<` so far. */
  merged: number
}

const LINKS = new WeakMap<Document, Links>()

/** In one walk; the parser's own look for an alias walks the document for each. */
function linksOf(document: Document): Links {
  const known = LINKS.get(document)
  if (known !== undefined) return known
  const targets = new Map<Alias, Node>()
  const anchors = new Map<string, Node>()
  visit(document, {
    Alias(_, alias) {
      const target = anchors.get(alias.source)
      if (target !== undefined) targets.set(alias, target)
    },
    Value(_, node) {
      if (node.anchor !== undefined) anchors.set(node.anchor, node)
    },
  })
  const links: Links = { targets, merged: 0 }
  LINKS.set(document, links)
  return links
}
