import { createHash } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'

const LUA = 'packages/sluicegate/lua'
const GENERATED = 'packages/sluicegate/src/redis/scripts.gen.ts'

/** Steps of every script, in this order, after `FIRST`; the steps of the forms follow, then those of the script, and the script itself. */
const FIRST = ['now', 'whole']
const SHARED = ['arithmetic', 'parts', 'bounds', 'records']
const LEASED = ['rate', 'fixed-window', 'sliding-window', 'sliding-log']
const FORMS = ['rate', 'fixed-window', 'sliding-window', 'sliding-log', 'concurrency']
/** What can be done with a key of a region. */
const REGION = ['draw', 'claim', 'refill', 'give-back', 'reclaim', 'add-debt', 'take-debt', 'block']
/** Encodings with a fast path, which runs before all other steps where it can decide. */
const UNROLLED = ['rate', 'fixed-window', 'sliding-window']

/** Writes the scripts as a module that has each step once, each script with the SHA-1 by which a server knows it. */
export async function embedLua(): Promise<string> {
  const pieces = new Pieces()
  const scripts: string[] = []
  for (const form of FORMS) scripts.push(await pieces.scriptOf(form, [...unrolled(form, 'take'), ...SHARED, form, 'verbs'], 'decide'))
  for (const form of LEASED) scripts.push(await pieces.scriptOf(`lease ${form}`, [...unrolled(form, 'lease'), ...SHARED, form], 'lease'))
  scripts.push(await pieces.scriptOf('all-of', [...SHARED, ...FORMS, 'verbs'], 'decide-all'))
  const callRate = await pieces.composed(FIRST, 'call-rate')
  const overrides = await pieces.composed([], 'overrides')
  const nodes = await pieces.composed(FIRST, 'nodes')
  const region: string[] = []
  for (const verb of REGION) region.push(`  '${verb}': ${await pieces.composed([...FIRST, 'region-key'], `region/${verb}`)},\n`)
  const names = [...FORMS, ...LEASED.map((form) => `lease ${form}`), 'all-of']
  const text = [
    "// Composed from lua/ by tools/embed-lua.\nimport type { Script } from './run-script.js'\n\n",
    '// Pieces of the scripts.\n',
    ...pieces.constants(),
    "\nfunction script(sha1: string, ...texts: readonly string[]): Script {\n  return { sha1, source: texts.join('') }\n}\n\n",
    `/** What a policy is to the scripts. */\nexport type EncodingName = ${unionOf(FORMS)}\n\n`,
    `export const SCRIPTS: Readonly<Record<${unionOf(names)}, Script>> = {\n${scripts.join('')}}\n\n`,
    `/** Which knows no policy. */\nexport const OVERRIDES_SCRIPT: Script = ${overrides}\n\n`,
    `/** The same. */\nexport const CALL_RATE_SCRIPT: Script = ${callRate}\n\n`,
    `/** The same. */\nexport const NODES_SCRIPT: Script = ${nodes}\n\n`,
    `/** The same; one a verb. */\nexport const REGION_SCRIPTS: Readonly<Record<${unionOf(REGION)}, Script>> = {\n${region.join('')}}\n`,
  ].join('')
  if ((await readFile(GENERATED, 'utf8').catch(() => '')) !== text) await writeFile(GENERATED, text)
  return `${GENERATED}: ${scripts.length + 3 + REGION.length} scripts`
}

/** Steps and scripts as they are embedded: files of `lua/` without comments, each a constant of the generated module. */
class Pieces {
  private readonly texts = new Map<string, string>()

  async scriptOf(name: string, steps: readonly string[], script: string): Promise<string> {
    return `  '${name}': ${await this.composed([...FIRST, ...steps], script)},\n`
  }

  /** The call that makes a script of its pieces. */
  async composed(steps: readonly string[], script: string): Promise<string> {
    const files = [...steps.map((step) => `steps/${step}`), `scripts/${script}`]
    const sha1 = createHash('sha1')
    for (const file of files) sha1.update(await this.textOf(file))
    return `/* @__PURE__ */ script('${sha1.digest('hex')}', ${files.map(constantOf).join(', ')})`
  }

  constants(): string[] {
    return [...this.texts].map(([file, text]) => `const ${constantOf(file)} =\n  ${JSON.stringify(text)}\n`)
  }

  private async textOf(file: string): Promise<string> {
    const text = this.texts.get(file) ?? withoutComments(await readFile(`${LUA}/${file}.lua`, 'utf8'))
    this.texts.set(file, text)
    return text
  }
}

/** `steps/fixed-window` is `STEPS_FIXED_WINDOW`. */
function constantOf(file: string): string {
  return file.toUpperCase().replace(/[^A-Z]/g, '_')
}

function unionOf(names: readonly string[]): string {
  return names.map((name) => `'${name}'`).join(' | ')
}

function unrolled(form: string, what: 'take' | 'lease'): readonly string[] {
  return UNROLLED.includes(form) ? [`${form}-${what}`] : []
}

/** Comments, indentation and spaces about operators stay in the source: no string of the scripts begins a line, or contains a quote. */
function withoutComments(source: string): string {
  const lines = source.split('\n').map((line) => line.replace(/\s*(?<!')--.*$/, '').trim())
  return `${lines
    .filter((line) => line !== '')
    .map(withoutSpaces)
    .join('\n')}\n`
}

function withoutSpaces(line: string): string {
  const pieces = line.split(/('[^']*')/)
  return pieces.map((piece, i) => (i % 2 === 0 ? piece.replace(/ ?([=,+*/<>{}()]) ?/g, '$1') : piece)).join('')
}
