import { existsSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'

/** Written by other steps than the compiler, each of which writes it whole. */
const NOT_OF_THE_COMPILER = new Set(['commonjs'])
const OUTPUT = /\.(?:js|d\.ts)(?:\.map)?$/

/** Removes what was compiled from sources that are gone: the compiler leaves it, and packages and tests would go on to use it. */
export function removeStaleOutputs(dist, src) {
  if (!existsSync(dist)) return
  for (const entry of readdirSync(dist, { withFileTypes: true })) {
    const output = join(dist, entry.name)
    if (entry.isDirectory()) {
      if (NOT_OF_THE_COMPILER.has(entry.name)) continue
      if (existsSync(join(src, entry.name))) removeStaleOutputs(output, join(src, entry.name))
      else rmSync(output, { recursive: true })
    } else if (OUTPUT.test(entry.name) && !existsSync(join(src, entry.name.replace(OUTPUT, '.ts')))) rmSync(output)
  }
}
