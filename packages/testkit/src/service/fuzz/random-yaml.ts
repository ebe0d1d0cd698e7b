import type { Random } from 'sluicegate-testkit'
import { damaged } from './fuzz-input.js'

/** `own`: policies and settings of the service. `envoy`: a domain and its descriptors. */
export type YamlForm = 'own' | 'envoy'

/** A file of one form: mappings and lists in block or flow style, with anchors, aliases, tags and comments, some of them wrong. */
export function randomYaml(random: Random, form: YamlForm): string {
  const tree = form === 'own' ? ownFile(random) : envoyFile(random)
  const text = random.chance(0.01) ? deepText(random) : `${random.chance(0.05) ? '---\n' : ''}${blockText(random, tree, 0)}\n`
  return random.chance(0.25) ? damaged(random, Buffer.from(text)).toString('utf8') : text
}

/** Pairs in place of an object: a name may be there twice. */
type Tree = string | readonly Tree[] | { readonly pairs: readonly (readonly [name: string, value: Tree])[] }
type Pairs = [name: string, value: Tree][]

function ownFile(random: Random): Tree {
  const pairs: Pairs = [
    ['policies', { pairs: Array.from({ length: random.integer(0, 3) }, (_, i) => [policyName(random, i), ownPolicy(random)] as const) }],
  ]
  const settings: Pairs = [
    ['listen', mapping(random, { http: '127.0.0.1:0', grpc: '"[::1]:81"', port: '8080', admin: 'off', resp: 'unix:/a' })],
    ['clients', mapping(random, { 'max-connections': '10', idle: '75s', headers: '10s' })],
    ['stop', mapping(random, { drain: '5s', finish: '1s' })],
    ['dashboard', mapping(random, { keys: 'masked' })],
    ['log', mapping(random, { level: 'info' })],
    ['throttle', mapping(random, { 'max-keys': '100' })],
    ['snapshot', mapping(random, { file: 'keys.snapshot', every: '1m' })],
    ['storage', mapping(random, { redis: '{ url: "redis://a" }', kind: 'memory' })],
    ['tokens', [mapping(random, { name: 'a', scope: 'admin', secret: 'a'.repeat(24), priority: 'high' })]],
    ['candidate', 'next.yaml'],
    ['tls', mapping(random, { cert: 'nowhere.pem', key: 'nowhere.key' })],
    ['domain', 'web'],
  ]
  for (const setting of settings) if (random.chance(0.06)) pairs.push(setting)
  return { pairs: mixed(random, pairs) }
}

function policyName(random: Random, index: number): string {
  return random.chance(0.9) ? `p${index}` : scalar(random)
}

function ownPolicy(random: Random): Tree {
  if (random.chance(0.08)) return { pairs: [['all-of', [namedPart(random, 'x'), namedPart(random, 'y')]]] }
  const algorithm = random.pick(['token-bucket', 'gcra', 'fixed-window', 'sliding-window', 'sliding-log', 'concurrency'])
  const pairs: Pairs = [
    ['algorithm', random.chance(0.95) ? algorithm : scalar(random)],
    ['limit', number(random)],
  ]
  pairs.push(algorithm === 'concurrency' ? ['ttl', span(random)] : ['window', span(random)])
  if (random.chance(0.8)) pairs.push(['max-keys', String(random.magnitude(16, 200))])
  const more: Pairs = [
    ['burst', number(random)],
    ['time-zone', random.pick(['Europe/Rome', 'UTC', 'Nowhere'])],
    ['max-settle', String(random.pick([1, 10, 0]))],
    ['on-full', random.pick(['evict', 'deny', 'drop'])],
    ['tiers', mapping(random, { pro: `{ limit: ${number(random)} }`, free: `{ limit: 1, window: ${span(random)} }` })],
    ['keys', mapping(random, { alice: 'pro', '"*.example"': '{ limit: 3 }' })],
    ['priorities', mapping(random, { high: '{ reserve: 10% }', low: '{}' })],
    ['default-priority', 'high'],
  ]
  for (const option of more) if (random.chance(0.08)) pairs.push(option)
  return { pairs: mixed(random, pairs) }
}

function namedPart(random: Random, name: string): Tree {
  return mapping(random, { name, algorithm: random.pick(['gcra', 'fixed-window']), limit: number(random), window: span(random) }, 0.97)
}

function envoyFile(random: Random): Tree {
  const pairs: Pairs = [
    ['domain', random.chance(0.95) ? 'web' : scalar(random)],
    ['descriptors', descriptors(random, 0)],
  ]
  if (random.chance(0.05)) pairs.push(['charge_denied', flag(random)], ['priority_key', 'class'])
  return { pairs: mixed(random, pairs) }
}

function descriptors(random: Random, depth: number): Tree {
  return Array.from({ length: random.integer(0, depth === 0 ? 3 : 2) }, () => descriptor(random, depth))
}

function descriptor(random: Random, depth: number): Tree {
  const pairs: Pairs = [['key', random.chance(0.95) ? random.pick(['user', 'path', 'tenant', 'method']) : scalar(random)]]
  if (random.chance(0.5))
    pairs.push(['value', random.chance(0.9) ? random.pick(['alice', '/a*', '"*"', 'a*b*c', '1', 'POST']) : scalar(random)])
  if (random.chance(0.7)) pairs.push(['rate_limit', rateLimit(random)])
  if (depth < 4 && random.chance(0.3)) pairs.push(['descriptors', descriptors(random, depth + 1)])
  for (const name of ['shadow_mode', 'quota_mode', 'detailed_metric', 'share_threshold', 'value_to_metric'])
    if (random.chance(0.08)) pairs.push([name, flag(random)])
  if (random.chance(0.08))
    pairs.push(['metadata', random.pick(['{ a: { b: 1 } }', '{ d: 2020-01-01, n: .nan }', '[1]', '{ 1: ~ }', '&m { a: 1 }'])])
  return { pairs: mixed(random, pairs) }
}

function rateLimit(random: Random): Tree {
  if (random.chance(0.08)) return mapping(random, { unlimited: flag(random), name: 'free' }, 0.8)
  const pairs: Pairs = [['requests_per_unit', number(random)]]
  pairs.push(
    random.chance(0.9)
      ? ['unit', random.pick(['second', 'MINUTE', 'hour', 'day', 'week', 'month', 'year', 'eon'])]
      : ['window', span(random)],
  )
  const more: Pairs = [
    ['algorithm', random.pick(['token-bucket', 'gcra', 'sliding-window', 'concurrency'])],
    ['burst', number(random)],
    ['cost', number(random)],
    ['name', random.pick(['a', 'b'])],
    ['replaces', [mapping(random, { name: random.pick(['a', 'b', 'c']) }, 0.9)]],
    ['charge_denied', flag(random)],
    ['max_keys', String(random.magnitude(16, 1_000))],
    ['time_zone', 'Europe/Rome'],
  ]
  for (const option of more) if (random.chance(0.08)) pairs.push(option)
  return { pairs: mixed(random, pairs) }
}

/** Some of the options, each in its place. */
function mapping(random: Random, of: Readonly<Record<string, Tree>>, probability = 0.6): Tree {
  return { pairs: Object.entries(of).filter(() => random.chance(probability)) }
}

/** Now and then with an option that is unknown, doubled, of another type, or missing. */
function mixed(random: Random, pairs: Pairs): Pairs {
  if (pairs.length === 0 || random.chance(0.93)) return pairs
  const at = random.integer(0, pairs.length - 1)
  const [name, value] = pairs[at] as [string, Tree]
  const fault = random.integer(0, 4)
  if (fault === 0) return pairs.toSpliced(at, 1)
  if (fault === 1) return [...pairs, [name, value]]
  if (fault === 2) return pairs.with(at, [`${name}s`, value])
  if (fault === 3) return pairs.with(at, [name, scalar(random)])
  return pairs.with(at, [name, [value]])
}

function number(random: Random): string {
  if (random.chance(0.9)) return String(random.magnitude(1, random.chance(0.9) ? 1_000 : 1e12))
  return random.pick(['0', '-1', '1.5', '1e3', '0x10', '0o7', '.inf', '.nan', '1_000', '99999999999999999999', '"5"', '~'])
}

function span(random: Random): string {
  if (random.chance(0.9)) return `${random.magnitude(1, 500)}${random.pick(['ms', 's', 'm', 'h', 'd'])}`
  return random.pick(['0s', '1 minute', '60', 'month', 'day', '1e3s', '99999999d', '-1s', '~'])
}

function flag(random: Random): string {
  return random.chance(0.9) ? random.pick(['true', 'false']) : random.pick(['yes', '1', '~', '"true"'])
}

function scalar(random: Random): string {
  const odd = [
    '~',
    '""',
    '"a\\nb"',
    "'it''s'",
    '!!int 3',
    '!!binary aGk=',
    '!x y',
    '&a 1',
    '*a',
    '<<',
    '? x',
    '|\n  a\n  b',
    '>-\n  a',
    '2020-01-01',
  ]
  return random.chance(0.7)
    ? random.pick(odd)
    : JSON.stringify(
        Array.from({ length: random.magnitude(1, 60) - 1 }, () => random.pick(['a', 'é', '😀', '\u0000', '*', '_', '.', ' ', '\n'])).join(
          '',
        ),
      )
}

/** Deep, or wide by aliases of aliases. */
function deepText(random: Random): string {
  const depth = random.magnitude(1, 3_000)
  const kind = random.integer(0, 3)
  if (kind === 0) return `policies: ${'['.repeat(depth)}`
  if (kind === 1) return `domain: web\ndescriptors: ${'[{key: a, descriptors: '.repeat(Math.min(depth, 300))}`
  if (kind === 2) return `policies:\n${Array.from({ length: Math.min(depth, 200) }, (_, i) => `${' '.repeat(i + 1)}a:`).join('\n')}\n`
  const levels = Array.from(
    { length: random.integer(1, 12) },
    (_, i) =>
      `l${i + 1}: &l${i + 1} [${Array(9)
        .fill(i === 0 ? 'x' : `*l${i}`)
        .join(', ')}]`,
  )
  return `domain: web\ndescriptors:\n  - key: a\n    metadata:\n${levels.map((level) => `      ${level}`).join('\n')}\n`
}

function blockText(random: Random, tree: Tree, depth: number): string {
  const indent = '  '.repeat(depth)
  const comment = random.chance(0.02) ? ` # ${random.pick(['a comment', 'é', ''])}` : ''
  if (typeof tree === 'string') return `${tree}${comment}`
  if (random.chance(0.25) || isEmpty(tree)) return flowText(tree)
  if (isList(tree)) return tree.map((each) => `\n${indent}- ${blockText(random, each, depth + 1).trimStart()}`).join('')
  const end = random.chance(0.02) ? '\r\n' : '\n'
  return tree.pairs.map(([name, value]) => `${end}${indent}${name}: ${blockText(random, value, depth + 1)}`).join('')
}

function flowText(tree: Tree): string {
  if (typeof tree === 'string') return tree
  if (isList(tree)) return `[${tree.map(flowText).join(', ')}]`
  return `{ ${tree.pairs.map(([name, value]) => `${name}: ${flowText(value)}`).join(', ')} }`
}

function isList(tree: Tree): tree is readonly Tree[] {
  return Array.isArray(tree)
}

function isEmpty(tree: Exclude<Tree, string>): boolean {
  return isList(tree) ? tree.length === 0 : tree.pairs.length === 0
}
