import { createHash } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'

const LUA = 'packages/sluicegate/lua'
const GENERATED = 'packages/sluicegate/src/redis/scripts.gen.ts'

/** Steps of every script, in this order, after the time; those of the forms follow, then the script itself. */
const SHARED = ['arithmetic', 'parts', 'bounds', 'records']
const LEASED = ['rate', 'fixed-window', 'sliding-window', 'sliding-log']
const FORMS = ['rate', 'fixed-window', 'sliding-window', 'sliding-log', 'concurrency']
/** What is decided before all that, where it can be. */
const UNROLLED: Readonly<Record<string, readonly string[]>> = { rate: ['rate-take'] }

/** Composes the scripts of their steps and writes them as a module, each with the SHA-1 by which a server knows it. */
export async function embedLua(): Promise<string> {
  const scripts: Record<string, string> = {}
  for (const form of FORMS) scripts[form] = await composed('decide', [form], UNROLLED[form])
  for (const form of LEASED) scripts[`lease ${form}`] = await composed('lease', [form])
  scripts['all-of'] = await composed('decide', FORMS)
  const entries = Object.entries(scripts).map(([name, source]) => {
    const sha1 = createHash('sha1').update(source).digest('hex')
    return `  '${name}': { sha1: '${sha1}', source: ${JSON.stringify(source)} },\n`
  })
  const text = `// Composed from lua/ by tools/embed-lua.\nexport const SCRIPTS = {\n${entries.join('')}} as const\n\n/** What a policy is to the scripts. */\nexport type FormName = ${FORMS.map((form) => `'${form}'`).join(' | ')}\n`
  if ((await readFile(GENERATED, 'utf8').catch(() => '')) !== text) await writeFile(GENERATED, text)
  return `${GENERATED}: ${entries.length} scripts`
}

async function composed(script: string, forms: readonly string[], unrolled: readonly string[] = []): Promise<string> {
  const files = [...['now', ...unrolled, ...SHARED, ...forms].map((step) => `steps/${step}`), `scripts/${script}`]
  const sources = await Promise.all(files.map((file) => readFile(`${LUA}/${file}.lua`, 'utf8')))
  return sources.map(withoutComments).join('')
}

/** Comments stay in the source. */
function withoutComments(source: string): string {
  const lines = source.split('\n').map((line) => line.replace(/\s*(?<!')--.*$/, ''))
  return `${lines.filter((line) => line.trim() !== '').join('\n')}\n`
}
