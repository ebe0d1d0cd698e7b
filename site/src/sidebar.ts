import { readdirSync, readFileSync } from 'node:fs'
import { entryNames } from './api-reference.js'

/** An entry beside the pages. */
export interface SidebarItem {
  readonly text: string
  readonly link?: string
  readonly items?: readonly SidebarItem[]
}

/** The documents by what a reader wants, each by its name in `docs`. */
const GROUPS: Readonly<Record<string, readonly string[]>> = {
  Start: ['quick-start', 'install', 'which-limiter', 'options', 'README', 'glossary'],
  Policies: ['token-bucket', 'gcra', 'fixed-window', 'sliding-window', 'sliding-log', 'concurrency', 'all-of'].map(
    (name) => `policies/${name}`,
  ),
  Recipes: ['login', 'plans', 'behind-a-proxy', 'websocket', 'graphql', 'serverless', 'background-jobs', 'webhooks'].map(
    (name) => `recipes/${name}`,
  ),
  Library: [
    'guide',
    'budgets',
    'waiting',
    'exceptions',
    'memory',
    'clocks',
    'frameworks',
    'keys',
    'headers',
    'queue',
    'outbound',
    'testing',
  ],
  Shared: ['shared', 'redis', 'postgres', 'stores', 'outages', 'cluster', 'edge', 'regions', 'many-servers', 'scale'],
  Service: [
    'service',
    'service-api',
    'service-run',
    'service-security',
    'clients',
    'proxies',
    'tiers',
    'envoy',
    'rlqs',
    'resp',
    'model-tokens',
  ],
  Operate: ['monitoring', 'load', 'replay', 'gate'],
  Migration: ['moving-from-express-rate-limit', 'moving-from-rate-limiter-flexible', 'moving-from-bottleneck'],
  Messages: ['errors', 'warnings', 'stability'],
}
const MEASURED: Readonly<Record<string, readonly string[]>> = {
  'How fast, how exact': [
    'benchmarks',
    'benchmarks-redis',
    'benchmarks-edge',
    'benchmarks-server',
    'sliding-window-accuracy',
    'lab',
    'chaos',
    'proof',
  ],
}

/** Entries beside the documents, and beside the reference. A document that no group names is among the last. */
export function sidebar(root: string): Record<string, readonly SidebarItem[]> {
  const all = readdirSync(`${root}docs`, { recursive: true, encoding: 'utf8' }).filter((file) =>
    /^((?:policies|recipes)\/)?[\w-]+\.md$/.test(file),
  )
  const named = new Set([...Object.values(GROUPS), ...Object.values(MEASURED)].flat())
  const others = all.map((file) => file.slice(0, -'.md'.length)).filter((name) => !named.has(name))
  const groups = [...Object.entries(GROUPS), ['More', others] as const, ...Object.entries(MEASURED)].filter(([, names]) => names.length > 0)
  const documents = groups.map(([text, names]) => ({
    text,
    items: names.map((name) => ({ text: titleOf(`${root}docs/${name}.md`), link: name === 'README' ? '/documentation' : `/${name}` })),
  }))
  const project = ['architecture', 'contributing', 'security', 'changelog'].map((name) => ({
    text: titleOf(`${root}${name.toUpperCase()}.md`),
    link: `/${name}`,
  }))
  const records = { text: 'Decision records', link: '/adr/' }
  const examples = { text: 'Examples', link: '/examples/' }
  const common = [...documents, { text: 'Project', items: [examples, ...project, records] }]
  const reference = { text: 'API', items: entryNames().map((name) => ({ text: name, link: `/api/${name}` })) }
  return { '/api/': [reference], '/playground': [], '/': common }
}

/** The first heading of a document. */
export function titleOf(file: string): string {
  const title = /^# +(.*)$/m.exec(readFileSync(file, 'utf8'))?.[1] ?? file
  return title.replaceAll('`', '')
}
