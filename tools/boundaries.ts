import type { Import } from './imports-of.js'

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

/** Source files of a folder, its tests left out. */
const sourcesOf = (folder: string): RegExp => new RegExp(`^${folder}/(?!.*\\.test\\.ts$)`)

/** What is published of a package: neither tests nor what they share. */
const publishedOf = (name: string): RegExp => new RegExp(`^packages/${name}/src/(?!testing/|.*\\.test\\.ts$)`)

/** The package whose tests share this file, as source or compiled. */
const ownerOfTesting = (file: string): string | undefined => file.match(/^packages\/([^/]+)\/(?:src|dist)\/testing\//)?.[1]

const isTestOf = (name: string, file: string): boolean => file.startsWith(`packages/${name}/src/`) && !publishedOf(name).test(file)

/** Adapters, by the framework whose types they use; that of Nest also makes its exceptions and decorators. */
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
const PLAIN_DATA = 'policy/[^/]*|time/duration|decision/decision|decision/decision-decoder|errors|once-in-process|options/[^/]*|shown'

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
export const BOUNDARIES: readonly Boundary[] = [
  {
    why: 'the library runs wherever its modules load: it imports only itself, and nothing of Node.js; adapters take types of their framework',
    files: publishedOf('sluicegate'),
    allows: (edge) => {
      if (isRelative(edge)) return leadsTo(edge, /^packages\/sluicegate\/src\//)
      const framework = frameworkOf(edge.from)
      return framework !== undefined && isPackage(edge, framework) && (edge.typeOnly || framework === FRAMEWORKS.nest)
    },
  },
  {
    why: 'an adapter translates and never decides: it imports the middleware, headers, keys, types, promises, and its own parts, and no other adapter',
    files: ADAPTER,
    allows: (edge) => {
      if (!isRelative(edge) || edge.typeOnly) return true
      return (
        leadsTo(edge, /\/src\/(middleware\/[^/]*|options\/[^/]*|headers\/[^/]*|keys\/[^/]*|awaitable|errors|once-in-process)\.ts$/) ||
        (adapterOf(edge.target) !== undefined && adapterOf(edge.target) === adapterOf(edge.from))
      )
    },
  },
  {
    why: 'adapters are entry points: no other file imports one',
    files: publishedOf('(sluicegate|server)'),
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
    files: sourcesOf('packages/sluicegate/src/(memory|waiting|layers)'),
    allows: (edge) => leadsTo(edge, /\/src\/((memory|memory\/snapshot|waiting|layers|policy|queue|options|time|decision)\/)?[^/]*\.ts$/),
  },
  {
    why: 'a queue runs work over any limiter: it knows what every limiter offers, timers and heaps, and no memory, store or request',
    files: sourcesOf('packages/sluicegate/src/queue'),
    allows: (edge) => leadsTo(edge, /\/src\/((queue|waiting|policy|options|time|decision)\/)?[^/]*\.ts$/),
  },
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
    why: 'outbound requests use limiters, clocks and headers, and neither middleware nor keys nor any store',
    files: sourcesOf('packages/sluicegate/src/outbound'),
    allows: (edge) => edge.typeOnly || leadsTo(edge, /\/src\/((outbound|headers|policy|waiting|options|time|decision)\/)?[^/]*\.ts$/),
  },
  {
    why: 'sending requests is for programs: nothing else that is published sends any with it',
    files: publishedOf('(sluicegate|server)'),
    allows: ({ from, target }) =>
      !target.startsWith('packages/sluicegate/src/outbound/') || from.startsWith('packages/sluicegate/src/outbound/'),
  },
  {
    why: 'verdicts of relaxed accuracy use the hash of keys, clocks, checks and warnings, and no limiter, policy, store or request',
    files: sourcesOf('packages/sluicegate/src/gate'),
    allows: (edge) =>
      leadsTo(
        edge,
        /\/src\/(gate\/[^/]*|memory\/(fingerprint|handle-check|core-memory)|options\/[^/]*|time\/[^/]*|errors|key|shown|warn-once)\.ts$/,
      ),
  },
  {
    why: 'an interface compatible with another library uses limiters, and of the middleware what adapters use; only one of the two knows a store',
    files: sourcesOf('packages/sluicegate/src/compat'),
    allows: (edge) =>
      edge.typeOnly ||
      !isRelative(edge) ||
      leadsTo(edge, /\/src\/((middleware|headers|keys|policy|options|time|decision|compat(\/[^/]*)?)\/)?[^/]*\.ts$/) ||
      (isOf(edge.from, 'compat/rate-limiter-flexible') && leadsTo(edge, /\/redis\/create-redis-limiter\.ts$/)),
  },
  {
    why: 'an interface compatible with one library knows nothing of another',
    files: sourcesOf('packages/sluicegate/src/compat'),
    allows: ({ from, target }) => [undefined, compatibleWith(from)].includes(compatibleWith(target)),
  },
  {
    why: 'compatible interfaces are entry points: no other file imports them',
    files: publishedOf('(sluicegate|server)'),
    allows: ({ from, target }) => !isOf(target, 'compat') || isOf(from, 'compat'),
  },
  {
    why: 'a shared limiter works over a backend: it does not know which; leases know of it only the port',
    files: sourcesOf('packages/sluicegate/src/(lease|shared)'),
    allows: (edge) =>
      !leadsTo(edge, /\/src\/(redis|cluster)\//) && (!isOf(edge.from, 'lease') || !leadsTo(edge, /\/src\/shared\/(?!backend\.ts)/)),
  },
  {
    why: 'Redis and the processes of a machine know nothing of each other',
    files: sourcesOf('packages/sluicegate/src/(redis|cluster)'),
    allows: ({ from, target }) => !isOf(target, isOf(from, 'redis') ? 'cluster' : 'redis'),
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
    why: 'the server uses the library by its public name',
    files: /^packages\/server\/src\//,
    allows: (edge) => !isRelative(edge) || leadsTo(edge, /^packages\/server\//),
  },
  {
    why: 'nothing that is published uses the testkit or the tools',
    files: publishedOf('(sluicegate|server)'),
    allows: (edge) => !isPackage(edge, 'sluicegate-testkit') && !leadsTo(edge, /^(tools|packages\/testkit)\//),
  },
  {
    why: 'what the tests of one package share stands in its folder `testing`, for them alone: it is not published',
    files: /^/,
    allows: ({ from, target }) => {
      const owner = ownerOfTesting(target)
      return owner === undefined || isTestOf(owner, from)
    },
  },
  {
    why: 'no other file imports the benchmarks',
    files: /^(packages|tools|examples)\//,
    allows: (edge) => !leadsTo(edge, /^bench\//) && !isPackage(edge, 'sluicegate-bench'),
  },
]
