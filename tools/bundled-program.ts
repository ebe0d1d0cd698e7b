import { readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { build } from 'esbuild'
import type { Written } from './commonjs-form.js'

/** Packages of the workspace, which one version of the program needs in the same version. */
const OURS = /^sluicegate(-\w+)?(\/|$)/
/** Beside the program itself, modules that it starts as programs, by their paths in `dist`. */
const STARTED = ['cli/load-process.js', 'cli/reader-thread.js']

/**
 * A program and all packages of the workspace that it imports, as few files: loading hundreds of modules took longer than all else that a
 * start does. What is imported by need stays apart. Packages of others stay packages, which are audited and updated as such.
 *
 * The files stand one folder below package.json, as those of `dist` do. Functions and classes keep their names.
 */
export async function bundledProgram(source: string): Promise<Written[]> {
  const { bin } = JSON.parse(readFileSync(`${source}/package.json`, 'utf8')) as { bin: Record<string, string> }
  const programs = [...Object.values(bin).map((file) => posix.relative('dist', file)), ...STARTED]
  const { outputFiles } = await build({
    entryPoints: programs.map((file) => `${source}/dist/${file}`),
    outbase: `${source}/dist`,
    outdir: 'dist',
    bundle: true,
    splitting: true,
    write: false,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    charset: 'utf8',
    legalComments: 'none',
    plugins: [
      {
        name: 'packages-of-others',
        setup(at) {
          at.onResolve({ filter: /^[^./]/ }, ({ path, kind }) =>
            kind === 'entry-point' || OURS.test(path) ? undefined : { path, external: true },
          )
        },
      },
    ],
  })
  const home = `${process.cwd()}/dist/`
  return outputFiles.map(({ path, text }): Written => [path.slice(home.length), text])
}
