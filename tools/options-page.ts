import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import ts from 'typescript'
import { type ConfigOption, configOptions } from './config-options.js'
import { faultsOfCompiler } from './faults-of-command.js'
import { EXAMPLES_PRELUDE, OPTION_SECTIONS, type OptionGroup } from './option-groups.js'

// docs/options.md: a heading for every option of the library and of the service's configuration file, from docstrings and schema.

const PAGE = 'docs/options.md'
const SOURCES = 'packages/sluicegate/src'
const FOLDER = '.cache/options'

/** An option with what its docstring says. */
interface DocumentedOption {
  readonly group: OptionGroup
  readonly name: string
  readonly type: string
  readonly what: string
  readonly byDefault: string
  readonly example: string
}

/** Options without a description, a default or an example, examples that do not compile, and a page that is not what `npm run api` writes. */
export function checkOptions(): string[] {
  const faults = [...libraryOptions().flatMap(missingOf), ...configOptions().flatMap(missingOf)]
  if (faults.length > 0) return faults
  const page = optionsPage()
  if (!existsSync(PAGE) || readFileSync(PAGE, 'utf8') !== page)
    return [`${PAGE} differs from the docstrings and the schema: run "npm run api"`]
  return exampleFaults()
}

/** Writes the page; an option that lacks something stays visible in the gate. */
export function recordOptions(): void {
  writeFileSync(PAGE, optionsPage())
}

/** What an option lacks. */
export function missingOf({ what, byDefault, example, ...option }: DocumentedOption | ConfigOption): string[] {
  const place = 'group' in option ? `${option.group.file}: ${option.group.interface}.${option.name}` : `sluicegate.json: ${option.path}`
  const missing = Object.entries({ 'a description': what, 'a default (@defaultValue)': byDefault, 'an example (@example)': example })
  return missing.filter(([, text]) => text === '').map(([name]) => `${place} has no ${name.replace(/^an? /, '')}`)
}

export function optionsPage(): string {
  const options = libraryOptions()
  const sections = OPTION_SECTIONS.map(({ title, about, groups }) => {
    const own = options.filter(({ group }) => groups.includes(group))
    const entries = own.map((option, i) => libraryEntry(option, own[i - 1]?.example))
    return [`## ${title}`, about, ...entries].join('\n\n')
  })
  const config = ['## Configuration file of the service', CONFIG_ABOUT, ...alike(configOptions()).map(configEntry)].join('\n\n')
  return `${[HEAD, ...sections, config].join('\n\n')}\n`
}

const HEAD = `# Options

Every option with its type, an example, and its default, which links to the page that explains it. \`npm run api\` writes this page.`
const CONFIG_ABOUT = `An option of the command line comes first, then its environment variable, then this file. An example shows the last
level: \`drain: 15s\` of \`stop.drain\` is \`stop: { drain: 15s }\` in the file. The schema for editors is [\`sluicegate.json\`](tiers.md#in-an-editor).`

/** @param before the example above, which is not written again. */
function libraryEntry({ group, name, type, what, byDefault, example }: DocumentedOption, before?: string): string {
  const link = group.links?.[name] ?? group.link
  const also = group.also?.[name]
  return [
    `### ${group.of}${also === undefined ? '' : `, ${also}`}: ${name}`,
    about(`\`${type}\``, byDefault, link),
    what,
    ...(example === before ? [] : [`\`${example}\``]),
  ].join('\n\n')
}

/** Options of one name that say the same, such as those of each storage. */
function alike(options: readonly ConfigOption[]): (readonly [ConfigOption, ...ConfigOption[]])[] {
  const groups = new Map<string, [ConfigOption, ...ConfigOption[]]>()
  for (const option of options) {
    const { path, type, what, byDefault } = option
    const content = JSON.stringify([path.split('.').at(-1), type, what, byDefault])
    const group = groups.get(content)
    if (group === undefined) groups.set(content, [option])
    else group.push(option)
  }
  return [...groups.values()]
}

function configEntry(options: readonly [ConfigOption, ...ConfigOption[]]): string {
  const [{ type, what, byDefault, example, link }] = options
  return [`### ${options.map(({ path }) => path).join(', ')}`, about(type, byDefault, link), what, `\`${example}\``].join('\n\n')
}

function about(type: string, byDefault: string, link: string): string {
  return byDefault === 'required' ? `${type}, [required](${link}).` : `${type}, [default](${link}) ${byDefault}.`
}

function libraryOptions(): DocumentedOption[] {
  return OPTION_SECTIONS.flatMap(({ groups }) => groups.flatMap(optionsOf))
}

function optionsOf(group: OptionGroup): DocumentedOption[] {
  const path = `${SOURCES}/${group.file}`
  const source = ts.createSourceFile(path, readFileSync(path, 'utf8'), ts.ScriptTarget.ES2022, true)
  const found = source.statements.find(
    (each): each is ts.InterfaceDeclaration => ts.isInterfaceDeclaration(each) && each.name.text === group.interface,
  )
  if (found === undefined) throw new Error(`${path} has no interface ${group.interface}`)
  return found.members.filter(ts.isPropertySignature).flatMap((member) => {
    const name = member.name.getText(source)
    if (group.omit?.includes(name) || ts.getJSDocTags(member).some(({ tagName }) => tagName.text === 'internal')) return []
    const tag = (wanted: string): string => {
      const comment = ts.getJSDocTags(member).find(({ tagName }) => tagName.text === wanted)?.comment
      return plain(ts.getTextOfJSDocComment(comment))
    }
    const [doc] = ts.getJSDocCommentsAndTags(member).filter(ts.isJSDoc)
    const type = (member.type?.getText(source) ?? '').replace(/\/\*\*.*?\*\//gs, '').replace(/\s+/g, ' ')
    const what = plain(ts.getTextOfJSDocComment(doc?.comment))
    return [{ group, name, type, what, byDefault: tag('defaultValue'), example: tag('example') }]
  })
}

/** One line, with names in place of links. */
function plain(text: string | undefined): string {
  return (text ?? '')
    .replace(/\{@link (?:\w+\.)?(\w+)\s*\}/g, '`$1`')
    .replace(/\s+/g, ' ')
    .trim()
}

/** Examples that do not compile under strict settings. */
function exampleFaults(): string[] {
  const blocks = libraryOptions().map(({ group, name, example }) => {
    const use = example.startsWith('{') ? `const options: ${typeOf(group)} = ${example}` : example
    return `// ${group.interface}.${name}\n{ ${group.prelude ?? ''}\n${use}\n}`
  })
  mkdirSync(FOLDER, { recursive: true })
  writeFileSync(`${FOLDER}/package.json`, '{ "type": "module" }')
  writeFileSync(`${FOLDER}/examples.ts`, `${EXAMPLES_PRELUDE}\n${blocks.join('\n')}\n`)
  const compilerOptions = { composite: false, noEmit: true, noUnusedLocals: false, noUnusedParameters: false, rootDir: '.' }
  writeFileSync(`${FOLDER}/tsconfig.json`, JSON.stringify({ extends: '../../tsconfig.base.json', compilerOptions, files: ['examples.ts'] }))
  return [...faultsOfCompiler('-p', FOLDER)]
}

function typeOf(group: OptionGroup): string {
  if (group.interface === 'BanOptions') return "LimiterOptions['banAfter']"
  return group.interface === 'SlowDownOptions' ? 'Parameters<typeof slowDown>[1]' : group.interface
}
