import { readFileSync } from 'node:fs'
import { CONFIG_LINKS } from './option-groups.js'

// The options of the configuration file of the service, from the schema that editors use.

const SCHEMA = 'packages/server/schema/sluicegate.json'

/** An option of the configuration file. */
export interface ConfigOption {
  /** `storage.redis.prefix`; in a list `tokens[].name`. */
  readonly path: string
  readonly type: string
  readonly what: string
  readonly byDefault: string
  readonly example: string
  readonly link: string
}

interface Schema {
  readonly description?: string
  readonly default?: unknown
  readonly examples?: readonly unknown[]
  readonly type?: string | readonly string[]
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly pattern?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly anyOf?: readonly Schema[]
  readonly items?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly allOf?: readonly { readonly then: Schema }[]
}

/** All options, in the order of the schema; those of policies once, whatever algorithms have them. */
export function configOptions(): ConfigOption[] {
  const root = JSON.parse(readFileSync(SCHEMA, 'utf8')) as Schema & { readonly $defs: { policy: { then: Schema; else: Schema } } }
  const { policy } = root.$defs
  const ofPolicies = new Map<string, Schema>()
  const required = new Set<string>()
  for (const one of [...(policy.else.allOf ?? []).map(({ then }) => then), policy.then]) {
    for (const [name, schema] of Object.entries(one.properties ?? {})) {
      if (!ofPolicies.has(name)) ofPolicies.set(name, name === 'algorithm' ? (policy.else.properties?.[name] ?? schema) : schema)
      if (one.required?.includes(name) && name !== 'all-of') required.add(name)
    }
  }
  const policies = [...ofPolicies].map(([name, schema]) => option(`policies.NAME.${name}`, schema, required.has(name)))
  return optionsIn(root, '').flatMap((each) => (each.path === 'policies' ? [each, ...policies] : [each]))
}

function optionsIn(schema: Schema, before: string): ConfigOption[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, each]) => {
    const path = `${before}${name}`
    // A mapping of options is no option itself.
    const own = each.properties === undefined ? [option(path, each, schema.required?.includes(name) ?? false)] : []
    return [...own, ...optionsIn(each, `${path}.`), ...(each.items === undefined ? [] : optionsIn(each.items, `${path}[].`))]
  })
}

function option(path: string, schema: Schema, isRequired: boolean): ConfigOption {
  const { description = '', default: byDefault, examples = [] } = schema
  const [what = '', said = ''] = description.split(/\s*Default: /)
  const [value] = examples
  return {
    path,
    type: typeOf(schema),
    what: what.trim(),
    byDefault: isRequired ? 'required' : byDefault === undefined ? said.replace(/\.$/, '') : `\`${String(byDefault)}\``,
    example: value === undefined ? '' : exampleOf(path, value),
    link: linkOf(path),
  }
}

/** The last level of the example: `drain: 15s` of `stop.drain`. */
export function exampleOf(path: string, value: unknown): string {
  return `${path.split('.').at(-1)}: ${flow(value)}`
}

function flow(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(flow).join(', ')}]`
  if (typeof value === 'object' && value !== null) {
    return `{ ${Object.entries(value)
      .map(([name, each]) => `${name}: ${flow(each)}`)
      .join(', ')} }`
  }
  const text = String(value)
  return typeof value === 'string' && /[*:{}[\],%#]/.test(text) ? `"${text}"` : text
}

function typeOf(schema: Schema): string {
  const { type, enum: choices, pattern = '', minimum, maximum, anyOf } = schema
  if (choices !== undefined)
    return choices
      .map((each) => `\`${String(each)}\``)
      .join(', ')
      .replace(/, (?=[^,]*$)/, ' or ')
  if (schema.const !== undefined) return `\`${String(schema.const)}\``
  if (anyOf !== undefined) return anyOf.map(typeOf).join(' or ')
  if (type === 'integer')
    return maximum === undefined ? `integer from ${minimum}` : `integer, ${minimum} to ${maximum.toLocaleString('en')}`
  if (type === 'array') return 'list'
  if (type === 'object') return 'mapping'
  return /\(ms\|s\|m\|h/.test(pattern) ? 'duration' : 'text'
}

function linkOf(path: string): string {
  const fitting = Object.keys(CONFIG_LINKS).filter((each) => path === each || path.startsWith(`${each}.`) || path.startsWith(`${each}[`))
  const [longest] = fitting.sort((a, b) => b.length - a.length)
  if (longest === undefined) throw new Error(`no page explains ${path}: add one to tools/option-groups.ts`)
  return CONFIG_LINKS[longest] as string
}
