import { createHash } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'

const LUA = 'packages/sluicegate/lua'
const GENERATED = 'packages/sluicegate/src/redis/scripts.gen.ts'

/** Steps of every script, in this order, after `FIRST`; the steps of the forms follow, then those of the script, and the script itself. */
const FIRST = ['now', 'whole']
const SHARED = ['arithmetic', 'parts', 'bounds', 'records']
const LEASED = ['rate', 'fixed-window', 'sliding-window', 'sliding-log']
const FORMS = ['rate', 'fixed-window', 'sliding-window', 'sliding-log', 'concurrency']
/** Encodings with a fast path, which runs before all other steps where it can decide. */
const UNROLLED = ['rate', 'fixed-window', 'sliding-window']

/** Composes the scripts of their steps and writes them as a module, each with the SHA-1 by which a server knows it. */
export async function embedLua(): Promise<string> {
  const scripts: Record<string, string> = {}
  for (const form of FORMS) scripts[form] = await composed([...unrolled(form, 'take'), ...SHARED, form, 'verbs'], 'decide')
  for (const form of LEASED) scripts[`lease ${form}`] = await composed([...unrolled(form, 'lease'), ...SHARED, form], 'lease')
  scripts['all-of'] = await composed([...SHARED, ...FORMS, 'verbs'], 'decide-all')
  const entries = Object.entries(scripts).map(([name, source]) => `  '${name}': ${embedded(source)},\n`)
  const overrides = embedded(withoutComments(await readFile(`${LUA}/scripts/overrides.lua`, 'utf8')))
  const text = [
    `// Composed from lua/ by tools/embed-lua.\nexport const SCRIPTS = {\n${entries.join('')}} as const\n\n`,
    `/** What a policy is to the scripts. */\nexport type EncodingName = ${FORMS.map((form) => `'${form}'`).join(' | ')}\n\n`,
    `/** Which knows no policy. */\nexport const OVERRIDES_SCRIPT = ${overrides} as const\n\n`,
    `/** The same. */\nexport const CALL_RATE_SCRIPT = ${embedded(await composed([], 'call-rate'))} as const\n\n`,
    `/** The same. */\nexport const NODES_SCRIPT = ${embedded(await composed([], 'nodes'))} as const\n`,
  ].join('')
  if ((await readFile(GENERATED, 'utf8').catch(() => '')) !== text) await writeFile(GENERATED, text)
  return `${GENERATED}: ${entries.length + 3} scripts`
}

function embedded(source: string): string {
  const sha1 = createHash('sha1').update(source).digest('hex')
  return `{ sha1: '${sha1}', source: ${JSON.stringify(source)} }`
}

function unrolled(form: string, what: 'take' | 'lease'): readonly string[] {
  return UNROLLED.includes(form) ? [`${form}-${what}`] : []
}

async function composed(steps: readonly string[], script: string): Promise<string> {
  const files = [...[...FIRST, ...steps].map((step) => `steps/${step}`), `scripts/${script}`]
  const sources = await Promise.all(files.map((file) => readFile(`${LUA}/${file}.lua`, 'utf8')))
  return sources.map(withoutComments).join('')
}

/** Comments and indentation stay in the source: no string of the scripts begins a line. */
function withoutComments(source: string): string {
  const lines = source.split('\n').map((line) => line.replace(/\s*(?<!')--.*$/, '').trim())
  return `${lines.filter((line) => line !== '').join('\n')}\n`
}
