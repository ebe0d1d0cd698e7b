import { readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { type Import, importsOf, trackedFiles } from './check-import-circles.js'

/** An import with the file it stands in and the one it leads to, both from the root; a bare specifier leads to itself. */
interface Edge extends Import {
  readonly from: string
  readonly target: string
}

/** What the files of one part may import, and why. */
export interface Boundary {
  readonly why: string
  readonly files: RegExp
  readonly allows: (edge: Edge) => boolean
}

const isRelative = ({ specifier }: Import): boolean => specifier.startsWith('.')
const isPackage = ({ specifier }: Import, name: string): boolean => specifier === name || specifier.startsWith(`${name}/`)
const leadsTo = ({ target }: Edge, pattern: RegExp): boolean => pattern.test(target)

const protocolOf = (file: string): string | undefined => file.match(/^packages\/server\/src\/protocols\/([^/]+)\//)?.[1]

const HTTP_FAST = /^packages\/server\/src\/protocols\/http\/fast\//

/** Source files of a folder, its tests left out. */
const sourcesOf = (folder: string): RegExp => new RegExp(`^${folder}/(?!.*\\.test\\.ts$)`)

/** What is published of a package: not its tests. */
const publishedOf = (name: string): RegExp => new RegExp(`^packages/${name}/src/(?!.*\\.test\\.ts$)`)

/** Adapters, by the framework whose types they use; that of Nest also makes its exceptions and decorators, and looks at its modules. */
const FRAMEWORKS = { express: 'express', fastify: 'fastify', hono: 'hono', koa: 'koa', nest: '@nestjs/common' } as const
const ADAPTER = /^packages\/sluicegate\/src\/adapters\/(express|fastify|fetch|hono|koa|nest)(?:\.ts$|\/(?!.*\.test\.ts$))/

/** The name of the adapter that a file belongs to. */
const adapterOf = (file: string): string | undefined => file.match(ADAPTER)?.[1]

/** Whether a file stands in a folder of the library. */
const isOf = (file: string, folder: string): boolean => file.startsWith(`packages/sluicegate/src/${folder}/`)

/** The framework that a file adapts to. */
const frameworkOf = (file: string): string | undefined =>
  isOf(file, 'compat/express-rate-limit') ? FRAMEWORKS.express : FRAMEWORKS[adapterOf(file) as keyof typeof FRAMEWORKS]

/** The library whose interface a file has; undefined for a file that several share. */
const compatibleWith = (file: string): string | undefined => file.match(/^packages\/sluicegate\/src\/compat\/([^/]+)\//)?.[1]

/** Modules of the library that hold plain data. */
const PLAIN_DATA =
  'policy/[^/]*|time/duration|decision/decision|decision/decision-decoder|errors|once-in-process|options/[^/]*|shown|warn-once'

/** What every extension of the library imports: the files of its public names that all limiters share, checks, messages and state of the process. */
const CONTRACT =
  'limiter|key|awaitable|errors|create-limiter|holds/(?:hold|metered)|decision/(?:decision|permit|reservation|settled-takes)|policy/(?:policy|policy-options|single-policy)|time/(?:clock|duration)|options/[^/]*|arguments|shown|once-in-process|warn-once|dropped-promise'
const TIMERS = 'waiting/(?:abort-watch|alarm|due-heap)'

/** Folders of the library that could be packages, and what each imports beside the contract. */
const EXTENSIONS: Readonly<Record<string, string>> = {
  queue: TIMERS,
  outbound: `${TIMERS}|headers/(?:header|read-rate-limit)|holds/hold-of`,
  gate: 'decision/count-heap|memory/(?:core-memory|fingerprint|handle-check)',
  'compat/express-rate-limit':
    'compat/limiter-verbs|headers/(?:header-writer|quota)|keys/(?:address|hop-list|ip-address|key-reader)|middleware/(?:denial|denial-response|keyless|limit|limit-result|limits|middleware-options|misuse-watch|node-exchange)',
  'compat/limiter-verbs': '',
}

/** The private packages of the service, the lowest first: each imports the ones before it by name. */
const SERVICE_PACKAGES = ['config', 'commands', 'server']

/** Folders of the core, the lowest first. */
const CORE_FOLDERS = ['atomics', 'policy', 'algorithms', 'table']
const CORE = 'packages/sluicegate/assembly/'

/** How high a file of the core stands: 0 for the files at its root that its folders share; undefined elsewhere. */
const heightInCore = (file: string): number | undefined => {
  if (!file.startsWith(CORE)) return undefined
  const [folder = ''] = file.slice(CORE.length).split('/')
  return CORE_FOLDERS.indexOf(folder) + 1
}

/** The architecture in the form of imports: every edge of every file has to be allowed by each boundary that covers the file. */
const BOUNDARIES: readonly Boundary[] = [
  {
    why: 'the library runs wherever its modules load: it imports only itself, and nothing of Node.js; adapters take types of their framework',
    files: publishedOf('sluicegate'),
    allows: (edge) => {
      // Imported by path, it is beside the code in every form of the package.
      if (isRelative(edge)) return leadsTo(edge, /^packages\/sluicegate\/(src\/|core\.wasm$)/)
      const framework = frameworkOf(edge.from)
      return (
        framework !== undefined &&
        [framework, ...(framework === FRAMEWORKS.nest ? ['@nestjs/core'] : [])].some((each) => isPackage(edge, each)) &&
        (edge.typeOnly || framework === FRAMEWORKS.nest)
      )
    },
  },
  {
    why: 'an adapter translates and never decides: it imports the middleware, headers, keys, types, promises, and its own parts, and no other adapter',
    files: ADAPTER,
    allows: (edge) => {
      if (!isRelative(edge) || edge.typeOnly) return true
      return (
        leadsTo(
          edge,
          /\/src\/(middleware\/[^/]*|options\/[^/]*|headers\/[^/]*|keys\/[^/]*|holds\/hold-of|awaitable|errors|once-in-process)\.ts$/,
        ) ||
        (adapterOf(edge.target) !== undefined && adapterOf(edge.target) === adapterOf(edge.from))
      )
    },
  },
  {
    why: 'adapters are entry points: no other file imports one',
    files: publishedOf('(sluicegate|config|commands|server)'),
    allows: (edge) => [undefined, adapterOf(edge.from)].includes(adapterOf(edge.target)),
  },
  {
    why: 'in the core tables know algorithms, algorithms know policies, policies know atomics, and none knows a folder above it or index.ts',
    files: new RegExp(`^${CORE}(?!index\\.ts$)`),
    allows: ({ from, target }) =>
      (heightInCore(target) ?? Number.POSITIVE_INFINITY) <= (heightInCore(from) ?? 0) && target !== `${CORE}index`,
  },
  {
    why: 'policies, durations, decisions and errors are plain data: they know no core, clock or limiter',
    files: new RegExp(`^packages/sluicegate/src/(?!.*\\.test\\.ts$)(${PLAIN_DATA})\\.ts$`),
    allows: (edge) => leadsTo(edge, new RegExp(`/src/(${PLAIN_DATA})\\.ts$`)),
  },
  {
    why: 'the limiter in memory, its queues and what options put around it know no shared limiter, store, request or header',
    files: sourcesOf('packages/sluicegate/src/(memory|holds|waiting|layers)'),
    allows: (edge) =>
      leadsTo(edge, /\/src\/((memory|memory\/snapshot|holds|waiting|layers|policy|queue|options|time|decision)\/)?[^/]*\.ts$/),
  },
  ...Object.entries(EXTENSIONS).map(([folder, also]): Boundary => {
    const allowed = new RegExp(`^packages/sluicegate/src/(?:${folder}(?:/.*)?|${CONTRACT}${also && `|${also}`})\\.ts$`)
    return {
      why: `src/${folder} could be a package: it imports the contract of the library (CONTRACT and EXTENSIONS in tools/boundaries.ts) and itself`,
      files: new RegExp(`^packages/sluicegate/src/${folder}(?:\\.ts$|/(?!.*\\.test\\.ts$))`),
      allows: (edge) => !isRelative(edge) || leadsTo(edge, allowed),
    }
  }),
  {
    why: 'headers are data: they know policies and decisions, and no limiter, request or response',
    files: sourcesOf('packages/sluicegate/src/headers'),
    allows: (edge) => edge.typeOnly || leadsTo(edge, new RegExp(`/src/(${PLAIN_DATA}|headers/[^/]*)\\.ts$`)),
  },
  {
    why: 'a key is derived from request facts: keys know errors and checks, and no limiter, policy, header or request',
    files: sourcesOf('packages/sluicegate/src/keys'),
    allows: (edge) => edge.typeOnly || leadsTo(edge, /\/src\/(key|errors|options\/[^/]*|keys\/[^/]*)\.ts$/),
  },
  {
    why: 'sending requests is for programs: nothing else that is published sends any with it',
    files: publishedOf('(sluicegate|config|commands|server)'),
    allows: ({ from, target }) =>
      !target.startsWith('packages/sluicegate/src/outbound/') || from.startsWith('packages/sluicegate/src/outbound/'),
  },
  {
    why: 'an interface compatible with one library knows nothing of another',
    files: sourcesOf('packages/sluicegate/src/compat'),
    allows: ({ from, target }) => [undefined, compatibleWith(from)].includes(compatibleWith(target)),
  },
  {
    why: 'compatible interfaces are entry points: no other file imports them',
    files: publishedOf('(sluicegate|config|commands|server)'),
    allows: ({ from, target }) => !isOf(target, 'compat') || isOf(from, 'compat'),
  },
  {
    why: 'a shared limiter works over a backend: it does not know which; leases know of it only the port',
    files: sourcesOf('packages/sluicegate/src/(lease|shared)'),
    allows: (edge) =>
      !leadsTo(edge, /\/src\/(redis|cluster|owner|store|durable-objects)\//) &&
      (!isOf(edge.from, 'lease') || !leadsTo(edge, /\/src\/shared\/(?!backend\.ts)/)),
  },
  {
    why: 'who owns a limiter in memory knows the port and its messages, and not how these travel or where its keys are kept',
    files: sourcesOf('packages/sluicegate/src/owner'),
    allows: (edge) => !leadsTo(edge, /\/src\/(redis|cluster|store|postgres|durable-objects|regions)\//),
  },
  {
    why: 'Redis, the processes of a machine, and a store that only compares and swaps know nothing of each other',
    files: sourcesOf('packages/sluicegate/src/(redis|cluster|store)'),
    allows: (edge) =>
      ['redis', 'cluster', 'store', 'store-testing'].every((folder) => !isOf(edge.target, folder) || isOf(edge.from, folder)),
  },
  {
    why: 'PostgreSQL is a store, and the sink of a ledger: it knows both ports, the limiter over any store, checks and errors',
    files: sourcesOf('packages/sluicegate/src/postgres'),
    allows: (edge) =>
      leadsTo(
        edge,
        /\/src\/((store|postgres|postgres\/runners|options|policy|decision)\/[^/]*|errors|awaitable|once-in-process|warn-once|ledger\/ledger-record|shared\/(backend|store|outage\/[^/]*))\.ts$/,
      ),
  },
  {
    why: 'the kit for stores imports the port, the limiter over it, and what these are given',
    files: sourcesOf('packages/sluicegate/src/store-testing'),
    allows: (edge) => leadsTo(edge, /\/src\/((store|store-testing|policy|time)\/[^/]*|create-limiter)\.ts$/),
  },
  {
    why: 'objects at the edge have the messages of processes, and nothing of Redis or channels; nothing knows of them',
    files: publishedOf('(sluicegate|config|commands|server)'),
    allows: ({ from, target }) =>
      isOf(from, 'durable-objects') ? !isOf(target, 'redis') && !isOf(target, 'cluster') : !isOf(target, 'durable-objects'),
  },
  {
    why: 'the oracle is a second opinion: it takes types from the library and never its arithmetic',
    files: /^packages\/testkit\/src\/(oracle|history)\/[^/]*\.ts$/,
    allows: (edge) => edge.typeOnly || !(isPackage(edge, 'sluicegate') || leadsTo(edge, /^packages\/sluicegate\//)),
  },
  {
    why: 'the testkit is built after the library: it imports the library by name, and what is not exported as it is compiled',
    files: /^packages\/testkit\/src\//,
    allows: (edge) => !isRelative(edge) || leadsTo(edge, /^packages\/(testkit|sluicegate\/dist)\//),
  },
  {
    why: 'a protocol translates for the engine and never decides: it takes types from the library, and the HTTP form of decisions',
    files: sourcesOf('packages/server/src/protocols'),
    allows: (edge) => edge.typeOnly || !isPackage(edge, 'sluicegate') || edge.specifier === 'sluicegate/http',
  },
  {
    why: 'a protocol knows no other protocol',
    files: sourcesOf('packages/server/src/protocols'),
    allows: (edge) => [undefined, protocolOf(edge.from)].includes(protocolOf(edge.target)),
  },
  {
    why: 'the fast path of HTTP has one door: fast-path.ts',
    files: sourcesOf('packages/server/src'),
    allows: ({ from, target }) =>
      HTTP_FAST.test(from) || !HTTP_FAST.test(target) || target === 'packages/server/src/protocols/http/fast/fast-path.ts',
  },
  ...SERVICE_PACKAGES.map((name, height): Boundary => {
    const below = ['sluicegate', ...SERVICE_PACKAGES.slice(0, height).map((each) => `sluicegate-${each}`)]
    return {
      why: `packages/${name} imports ${below.join(', ')} by name, and of the workspace nothing else`,
      files: publishedOf(name),
      allows: (edge) =>
        isRelative(edge)
          ? leadsTo(edge, new RegExp(`^packages/${name}/src/`))
          : !edge.specifier.startsWith('sluicegate') || below.some((each) => isPackage(edge, each)),
    }
  }),
  {
    why: 'what runs on the pages of the site imports the library by its public name',
    files: sourcesOf('site/src/playground'),
    allows: (edge) => isPackage(edge, 'sluicegate') || leadsTo(edge, /^site\/src\/playground\//),
  },
  {
    why: 'no other file imports the benchmarks',
    files: /^(packages|tools|examples)\//,
    allows: (edge) => !leadsTo(edge, /^bench\//) && !isPackage(edge, 'sluicegate-bench'),
  },
]

/** Imports in the working tree that cross a boundary. */
export function checkBoundaries(): string[] {
  const files = trackedFiles(/^(packages|bench|lab|site|deploy|tools|examples)\/.*\.(ts|mts|mjs|js)$/)
  return files.flatMap((file) => boundaryFaults(file, readFileSync(file, 'utf8')))
}

/** Imports of one module that cross a boundary. */
export function boundaryFaults(file: string, source: string, boundaries: readonly Boundary[] = BOUNDARIES): string[] {
  const covering = boundaries.filter(({ files }) => files.test(file))
  if (covering.length === 0) return []
  return importsOf(file, source).flatMap((found) => {
    const edge = { ...found, from: file, target: targetOf(file, found.specifier) }
    const crossed = covering.filter(({ allows }) => !allows(edge))
    return crossed.map(({ why }) => `${file}:${found.line} imports '${found.specifier}', but ${why}`)
  })
}

function targetOf(file: string, specifier: string): string {
  if (!specifier.startsWith('.')) return specifier
  return posix.join(posix.dirname(file), specifier).replace(/\.js$/, '.ts')
}
