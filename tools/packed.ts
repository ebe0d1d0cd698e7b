import { execFileSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { resolve } from 'node:path'
import { publishablePackage } from './publishable-packages.js'
import type { Published } from './published.js'

/** A packed package, as npm describes it. */
export interface Packed {
  readonly filename: string
  /** Bytes, as downloaded and as installed. */
  readonly size: number
  readonly unpackedSize: number
  readonly files: readonly { readonly path: string }[]
  /** The folder of which it was packed. */
  readonly folder: string
}

/** Packs a built package as it is published, into a folder. */
export async function packed(name: Published, target: string, home?: string): Promise<Packed> {
  mkdirSync(target, { recursive: true })
  const folder = await publishablePackage(name, home)
  const printed = execFileSync('npm', ['pack', resolve(folder), '--json', '--pack-destination', target], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const [described] = JSON.parse(printed) as [Packed]
  return { ...described, folder }
}
