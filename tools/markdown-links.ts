import { posix } from 'node:path'

/** Links of a document to files of the repository, as paths from its root; links to the web and within the document left out. */
export function linkedFiles(file: string, markdown: string): string[] {
  const prose = markdown.replace(/^```.*?^```$/gms, '').replace(/`[^`\n]*`/g, '')
  const targets = [...prose.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target]) => target?.replace(/#.*$/, '') ?? '')
  return targets.filter((target) => target !== '' && !/^[a-z]+:/.test(target)).map((target) => posix.join(posix.dirname(file), target))
}
