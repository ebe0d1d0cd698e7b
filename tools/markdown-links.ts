import { posix } from 'node:path'

/** Links of a document to files of the repository, as paths from its root; links to the web and within the document left out. */
export function linkedFiles(file: string, markdown: string): string[] {
  const targets = [...proseOf(markdown).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target]) => target?.replace(/#.*$/, '') ?? '')
  return targets.filter((target) => target !== '' && !/^[a-z]+:/.test(target)).map((target) => posix.join(posix.dirname(file), target))
}

/** Links of a document to headings, in itself or in another document of the repository. */
export function linkedHeadings(file: string, markdown: string): { readonly target: string; readonly anchor: string }[] {
  const links = [...proseOf(markdown).matchAll(/\]\(([^)\s#]*)#([^)\s]+)\)/g)].map(([, path = '', anchor = '']) => ({ path, anchor }))
  const local = links.filter(({ path }) => !/^[a-z]+:/.test(path) && (path === '' || path.endsWith('.md')))
  return local.map(({ path, anchor }) => ({ target: path === '' ? file : posix.join(posix.dirname(file), path), anchor }))
}

/**
 * The anchors of a document's headings by GitHub's rules: lower case, only letters, digits, `_` and `-`, one hyphen for each space; the
 * second of two equal ones ends in `-1`, and so on. Explicit `<a id="...">` count too.
 */
export function anchorsOf(markdown: string): ReadonlySet<string> {
  const anchors = new Set<string>()
  const prose = markdown.replace(/^```.*?^```$/gms, '')
  for (const [, heading = ''] of prose.matchAll(/^#{1,6} +(.*?)(?: +#+)? *$/gm)) {
    const slug = slugOf(heading)
    let anchor = slug
    for (let count = 1; anchors.has(anchor); count++) anchor = `${slug}-${count}`
    anchors.add(anchor)
  }
  for (const [, id = ''] of prose.matchAll(/<a (?:id|name)="([^"]+)"/g)) anchors.add(id)
  return anchors
}

function slugOf(heading: string): string {
  const text = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').replace(/<[a-z/][^>]*>/g, '')
  return text
    .toLowerCase()
    .replace(/[^\p{L}\p{M}\p{N}_ -]/gu, '')
    .replaceAll(' ', '-')
}

/** Without code, in which nothing is a link. */
function proseOf(markdown: string): string {
  return markdown.replace(/^```.*?^```$/gms, '').replace(/`[^`\n]*`/g, '')
}
