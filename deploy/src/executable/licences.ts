import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { ROOT } from '../made-with.js'

const LICENCE_FILE = /^(?:licen[cs]e|copying)(?:\.(?:md|txt))?$/i

/** The texts of the licences of Sluicegate, Node.js and each package that is in the executable, each under its name. */
export function licencesOf(runtime: string, packages: readonly string[]): string {
  const parts = [ROOT, runtime, ...packages.map((folder) => `${ROOT}${folder}/`)].map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(`${folder}package.json`, 'utf8'))
    return `${name} ${version}\n\n${textOf(folder) ?? `License: ${license}`}`
  })
  return `${parts.map((part) => part.trimEnd()).join(`\n\n${'-'.repeat(80)}\n\n`)}\n`
}

function textOf(folder: string): string | undefined {
  const file = readdirSync(folder).find((name) => LICENCE_FILE.test(name) && existsSync(`${folder}${name}`))
  return file === undefined ? undefined : readFileSync(`${folder}${file}`, 'utf8')
}
