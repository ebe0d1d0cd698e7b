import { posix } from 'node:path'

/** Documents at the root that are pages of the site. */
const ROOT_PAGES = ['ARCHITECTURE.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md']

/** Where a document of the repository is on the site, as a path without a slash before it; undefined when it is no page. */
export function pageOf(file: string): string | undefined {
  if (ROOT_PAGES.includes(file)) return file.toLowerCase()
  if (file === 'README.md') return 'index.md'
  if (file === 'docs/README.md') return 'documentation.md'
  if (file === 'docs/adr') return 'adr/index.md'
  if (file === 'examples' || file === 'examples/README.md') return 'examples/index.md'
  if (/^docs\/.*\.md$/.test(file)) return file.slice('docs/'.length)
  if (/^site\/reference\/api\/.*\.md$/.test(file)) return file.slice('site/reference/'.length)
  if (/^site\/pages\/.*\.md$/.test(file)) return file.slice('site/pages/'.length)
  if (/^examples\/.*(\.(mjs|ya?ml|conf|cfg|lua|json)|\/Caddyfile)$/.test(file)) return `examples/${nameOfExample(file)}.md`
  return undefined
}

/** `examples/nginx/sluicegate.conf` is `nginx-sluicegate-conf`: a name that no host takes for its own file. */
export function nameOfExample(file: string): string {
  return file.slice('examples/'.length).replace(/[/.]/g, '-')
}

/**
 * Where a link of a document leads on the site: a page, else the file in the repository, else nowhere (undefined: the words stay).
 *
 * @param file the document, from the root of the repository
 * @param repository address of the repository's files, without a slash at its end
 */
export function linkFrom(file: string, target: string, repository: string | undefined): string | undefined {
  if (/^([a-z]+:|#|\/)/.test(target)) return target
  const [path = '', anchor] = target.split('#')
  const found = posix.join(posix.dirname(file), path).replace(/\/$/, '')
  const page = pageOf(found)
  const fragment = anchor === undefined ? '' : `#${anchor}`
  if (page !== undefined) return `/${page}${fragment}`
  return repository === undefined ? undefined : `${repository}/${found}${fragment}`
}

/** The anchor of a heading by GitHub's rules: the documents' links are made for those. */
export function anchorOf(heading: string): string {
  return heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{M}\p{N}_ -]/gu, '')
    .replaceAll(' ', '-')
}
