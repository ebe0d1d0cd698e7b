import { readFileSync } from 'node:fs'
import { dirname, relative, resolve } from 'node:path'
import { build, type Plugin, transform } from 'esbuild'
import { ROOT } from '../software.js'

/** Where the modules of the script think they are. Nothing is read from there. */
const HOME = '/sluicegate'
const OURS = /[/\\](?:packages|node_modules[/\\]sluicegate(?:-[\w-]+)?)[/\\](?!.*node_modules)/
/** A file that a module reads beside itself, such as its package.json. */
const READ_BESIDE = /readFileSync\(new URL\((['"])([^'"]+)\1, import\.meta\.url\), (['"])utf8\3\)/g
/** A module that another one starts as a program, by `fork`. */
const PROGRAM_BESIDE = /new URL\((['"])(\.[^'"]+\.js)\1, import\.meta\.url\)/g

/** Functions keep their names: a third less to read at each start, and in the executable twice. */
const SMALL = { minifySyntax: true, minifyWhitespace: true, legalComments: 'none' } as const

/** A program with all that it imports as one script. */
export interface OneScript {
  /** A script of the CommonJS form that requires only what Node.js has built in. */
  readonly code: string
  /** Folders of the packages of others that are in it. */
  readonly packages: readonly string[]
}

/**
 * Bundles a program and the programs that it starts with `fork`.
 *
 * Workers run the same script, so a part of the program that is started as a process or a thread of its own is found in it: `fork` and
 * `node:cluster` name a module, and the entry below runs that one.
 *
 * @throws when a module uses `import.meta` in a way that one script cannot offer.
 */
export async function oneScript(main: string): Promise<OneScript> {
  const programs = new Set([resolve(main)])
  // Programs are found while modules are read, and each may start others.
  for (let known = 0; known < programs.size; ) {
    known = programs.size
    await bundled(programs)
  }
  const { code, inputs } = await bundled(programs)
  // Top-level await is inside functions now, since the entry loads each program by need: the CommonJS form can have the rest.
  const { code: script } = await transform(code, { ...SMALL, format: 'cjs', platform: 'node', target: 'node20' })
  if (script.includes('import.meta.')) throw new Error('a module uses import.meta in a way that one script cannot offer')
  return { code: script, packages: packagesOf(inputs) }
}

async function bundled(programs: Set<string>): Promise<{ code: string; inputs: readonly string[] }> {
  const { outputFiles, metafile } = await build({
    stdin: { contents: entryOf([...programs]), resolveDir: ROOT, sourcefile: 'entry.js' },
    bundle: true,
    write: false,
    metafile: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    charset: 'utf8',
    legalComments: 'none',
    absWorkingDir: ROOT,
    plugins: [withoutFiles((program) => programs.add(program)), sameScriptInThreads],
  })
  return { code: outputFiles[0]?.text ?? '', inputs: Object.keys(metafile.inputs) }
}

/** Runs the program that `fork` or a thread names, else the first one. */
function entryOf(programs: readonly string[]): string {
  const loads = programs.map((file) => `${JSON.stringify(placeOf(file))}: () => import(${JSON.stringify(file)})`)
  return `
import { isMainThread } from 'node:worker_threads'
const programs = { ${loads.join(', ')} }
const [first] = Object.keys(programs)
// Workers are started by it, and it may be relative.
process.argv[1] = process.execPath
const named = isMainThread && process.send === undefined ? undefined : process.argv[2]
if (named === process.execPath || Object.hasOwn(programs, named)) process.argv.splice(2, 1)
programs[Object.hasOwn(programs, named) ? named : first]()
`
}

function placeOf(file: string): string {
  return `${HOME}/${relative(ROOT, file)}`
}

/** What modules of ours read beside themselves becomes text in them; what they start beside themselves is reported. */
function withoutFiles(starts: (program: string) => void): Plugin {
  return {
    name: 'without-files',
    setup(at) {
      at.onLoad({ filter: /\.js$/ }, ({ path }) => {
        if (!OURS.test(path)) return undefined
        const read = readFileSync(path, 'utf8')
        const beside = (name: string): string => resolve(dirname(path), name)
        const contents = read.replace(READ_BESIDE, (_, __, name: string) => JSON.stringify(readFileSync(beside(name), 'utf8')))
        for (const [, , name = ''] of contents.matchAll(PROGRAM_BESIDE)) starts(beside(name))
        return { contents: contents.replaceAll('import.meta.url', JSON.stringify(`file://${placeOf(path)}`)) }
      })
    },
  }
}

/** A thread is made of a file, of which there is none: it runs the script that stands in the executable. */
const sameScriptInThreads: Plugin = {
  name: 'same-script-in-threads',
  setup(at) {
    at.onResolve({ filter: /^node:worker_threads$/ }, ({ importer, namespace }) =>
      namespace === 'file' && OURS.test(importer) ? { path: 'worker_threads', namespace: 'same-script' } : undefined,
    )
    at.onLoad({ filter: /.*/, namespace: 'same-script' }, () => ({
      contents: `
export { isMainThread, parentPort, threadId, workerData } from 'node:worker_threads'
import { Worker as WorkerOfNode } from 'node:worker_threads'
import { getAsset } from 'node:sea'
export class Worker extends WorkerOfNode {
  constructor(file, options) {
    const named = file instanceof URL ? { argv: [file.pathname] } : {}
    super(getAsset('script', 'utf8'), { ...options, ...named, eval: true })
  }
}`,
    }))
  },
}

/** Packages of others, by the modules that were taken of them. */
function packagesOf(inputs: readonly string[]): string[] {
  const folders = inputs.map((input) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(input)?.[0]).filter((folder) => folder !== undefined)
  return [...new Set(folders)].sort()
}
