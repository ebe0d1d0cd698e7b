import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { trackedFiles } from './check-import-circles.js'
import { faultsOfCompiler } from './faults-of-command.js'
import { anchorsOf, type Example, examplesIn, linkedFiles, linkedHeadings } from './markdown-examples.js'

/** Inside the checkout, so that `import 'sluicegate'` finds the built package as it would in a project of one's own. */
const FOLDER = '.cache/documented'
const MOST_MS = 20_000

/** Links that lead nowhere, and examples that do not work. */
export function checkDocs(): string[] {
  const documents = trackedFiles(/\.md$/).map((file) => [file, readFileSync(file, 'utf8')] as const)
  const dead = documents.flatMap(([file, text]) => {
    // What packages contain is checked where they are installed (packed-library.long.test.ts).
    const targets = linkedFiles(file, text).filter((target) => !/^packages\/\w+\/docs\//.test(target) && !existsSync(target))
    return targets.map((target) => `${file} links to ${target}, which is not there`)
  })
  return [...dead, ...deadAnchors(documents), ...exampleFaults(documents.flatMap(([file, text]) => examplesIn(file, text)))]
}

/** Links to headings that the linked document does not have. */
function deadAnchors(documents: readonly (readonly [file: string, text: string])[]): string[] {
  const anchors = new Map(documents.map(([file, text]) => [file, anchorsOf(text)]))
  return documents.flatMap(([file, text]) => {
    const dead = linkedHeadings(file, text).filter(({ target, anchor }) => anchors.get(target)?.has(anchor) === false)
    return dead.map(({ target, anchor }) => `${file} links to ${target}#${anchor}, but ${target} has no such heading`)
  })
}

/** Examples in documents that do not compile under strict settings, fail, or print something else than the document says. */
function exampleFaults(examples: readonly Example[]): string[] {
  if (!examples.some(({ file }) => file === 'README.md')) return ['README.md has no example that begins with "```ts run"']
  rmSync(FOLDER, { recursive: true, force: true })
  mkdirSync(FOLDER, { recursive: true })
  const files = examples.map((_, index) => `example-${index}.ts`)
  examples.forEach(({ code }, index) => {
    writeFileSync(`${FOLDER}/${files[index]}`, code)
  })
  writeFileSync(`${FOLDER}/package.json`, '{ "type": "module" }')
  const settings = { composite: false, declaration: false, noUnusedLocals: false, outDir: '.', rootDir: '.' }
  writeFileSync(`${FOLDER}/tsconfig.json`, JSON.stringify({ extends: '../../tsconfig.base.json', compilerOptions: settings, files }))
  const where = examples.map(({ file, line }, index) => `${files[index]} is ${file}:${line}`).join('\n')
  const types = faultsOfCompiler('-p', FOLDER).map((fault) => `${fault}\n${where}`)
  return types.length > 0 ? types : examples.flatMap(outcomeFaults)
}

function outcomeFaults({ file, line, prints }: Example, index: number): string[] {
  const done = spawnSync(process.execPath, [`${FOLDER}/example-${index}.js`], { encoding: 'utf8', timeout: MOST_MS })
  if (done.status !== 0) return [`${file}:${line} fails: ${done.stderr || done.error?.message || done.signal}`]
  if (prints === undefined || done.stdout === prints) return []
  return [`${file}:${line} prints\n${done.stdout}and not\n${prints}`]
}
