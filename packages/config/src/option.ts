import { type ListenAddress, listenAddressText } from './listen-address.js'
import type { Section } from './section.js'
import { timeSpanText } from './time-span.js'

/** A JSON Schema, as far as editors need one. */
export type JsonSchema = Readonly<Record<string, unknown>>

/** A kind of value: how it is read and checked, and how it is written. */
export interface Kind<Value> {
  readonly schema: JsonSchema
  /** Undefined where it is left out, and after a fault, which is recorded. */
  read(section: Section, name: string): Value | undefined
  /** As a file has it; left out: as it is. */
  shown?(value: Value): unknown
}

/** What people are told of an option. */
interface Said<Value> {
  /** The description, which ends in `Default: ...` where that is no value. */
  readonly what?: string
  /** The value without it. */
  readonly standard?: Value
  /** The same where something else decides it, such as the library: only told. */
  readonly usual?: unknown
  readonly example?: unknown
  /** It has to be there; what its fault says more. */
  readonly required?: string
}

/** One option of a file: its name there, its checks, its schema and its line on the page of options. */
export interface Option<Value> {
  readonly name: string
  readonly schema: JsonSchema
  readonly standard: Value
  readonly isRequired: boolean
  read(section: Section): Value
  shown(value: Value): unknown
}

/** The options of a section, by the names that they have in the configuration, in the order in which messages list them. */
export type Table = Readonly<Record<string, Option<unknown>>>

/** What a section with these options is read as. */
export type ValuesOf<Options extends Table> = {
  readonly [Name in keyof Options]: Options[Name] extends Option<infer Value> ? Value : never
}

export function option<Value>(
  name: string,
  kind: Kind<Value>,
  said: Said<NoInfer<Value>> & { readonly standard: NoInfer<Value> },
): Option<Value>
export function option<Value>(name: string, kind: Kind<Value>, said: Said<NoInfer<Value>>): Option<Value | undefined>
export function option<Value>(name: string, kind: Kind<Value>, said: Said<Value>): Option<Value | undefined> {
  const { what, standard, usual = shown(standard), example, required } = said
  function shown(value: Value | undefined): unknown {
    return value === undefined || kind.shown === undefined ? value : kind.shown(value)
  }
  return {
    name,
    schema: {
      ...(what !== undefined && { description: what }),
      ...(usual !== undefined && { default: usual }),
      ...(example !== undefined && { examples: [example] }),
      ...kind.schema,
    },
    standard,
    isRequired: required !== undefined,
    read(section) {
      const value = kind.read(section, name)
      if (value === undefined && required !== undefined) section.require(name, required)
      return value ?? standard
    },
    shown,
  }
}

/** Reads all options of a table. Those of the section that are in none are faults, which {@link Section.done} records. */
export function valuesOf<Options extends Table>(section: Section, options: Options): ValuesOf<Options> {
  return Object.fromEntries(Object.entries(options).map(([name, each]) => [name, each.read(section)])) as ValuesOf<Options>
}

/** The values of a table whose options are all left out. */
export function standardsOf<Options extends Table>(options: Options): ValuesOf<Options> {
  return Object.fromEntries(Object.entries(options).map(([name, { standard }]) => [name, standard])) as ValuesOf<Options>
}

/** As {@link valuesOf}, of a section that has no others. */
export function wholeOf<Options extends Table>(section: Section, options: Options): ValuesOf<Options> {
  const values = valuesOf(section, options)
  section.done()
  return values
}

/** The values as a file has them; without those that are undefined. */
export function shownOf(options: Table, values: object): Record<string, unknown> {
  const shown = Object.entries(options).map(([name, each]) => [each.name, each.shown((values as Record<string, unknown>)[name])])
  return Object.fromEntries(shown.filter(([, value]) => value !== undefined))
}

/** The schema of a section. */
export function schemaOf(options: Table, more: JsonSchema = {}): JsonSchema {
  const all = Object.values(options)
  const required = all.filter(({ isRequired }) => isRequired).map(({ name }) => name)
  return {
    type: 'object',
    properties: Object.fromEntries(all.map(({ name, schema }) => [name, schema])),
    additionalProperties: false,
    ...(required.length > 0 && { required }),
    ...more,
  }
}

/** A section within a section, for its schema: what reads it calls {@link valuesOf}. `more` is what the schema says beside its options. */
export function part(name: string, options: Table, said: Said<never> = {}, more: JsonSchema = {}): Option<undefined> {
  return option<never>(name, { schema: schemaOf(options, more), read: () => undefined }, said) as Option<undefined>
}

export function integer(min: number, max: number): Kind<number> {
  return { schema: { type: 'integer', minimum: min, maximum: max }, read: (section, name) => section.integer(name, min, max) }
}

export function duration(minMs: number, maxMs: number): Kind<number> {
  return {
    schema: { type: 'string', pattern: '^\\d{1,9}(\\.\\d{1,3})?(ms|s|m|h|d)$' },
    read: (section, name) => section.duration(name, minMs, maxMs),
    shown: timeSpanText,
  }
}

export function choice<Choice extends string | number>(choices: readonly Choice[]): Kind<Choice> {
  return { schema: { enum: choices }, read: (section, name) => section.oneOf(name, choices) }
}

/** @param form what it has to match, and the fault of what does not. */
export function text(example: string, form?: readonly [pattern: RegExp, reason: string]): Kind<string> {
  return {
    schema: { type: 'string', ...(form === undefined ? { minLength: 1 } : { pattern: form[0].source }) },
    read(section, name) {
      const value = section.text(name, example)
      if (value !== undefined && form !== undefined && !form[0].test(value)) section.fault(name, form[1])
      return value
    },
  }
}

/** A text that no message repeats, and why it cannot be used. */
export function secret(schema: JsonSchema, faultOf: (value: string) => string | undefined): Kind<string> {
  return {
    schema: { type: 'string', ...schema },
    read(section, name) {
      const value = section.secret(name)
      const fault = value === undefined ? undefined : faultOf(value)
      if (fault !== undefined) section.fault(name, fault)
      return value
    },
  }
}

/** Where to listen. What is off has no address, as what is left out where nothing is usual. */
export function listener(name: string, usual: ListenAddress | undefined, said: Said<never>): Option<ListenAddress | undefined> {
  const schema = { type: 'string', minLength: 1 }
  const told = option(name, { schema, read: () => undefined }, { ...said, usual: listenAddressText(usual) })
  return { ...told, read: (section) => (section.has(name) ? section.address(name) : usual), shown: listenAddressText }
}
