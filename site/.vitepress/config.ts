import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitepress'
import { anchorOf, pageOf } from '../dist/page-addresses.js'
import { linksOfRepository } from '../dist/repository-links.js'
import { sidebar } from '../dist/sidebar.js'

const root = fileURLToPath(new URL('../../', import.meta.url))
const { version } = JSON.parse(readFileSync(`${root}package.json`, 'utf8'))
/** Where the files of the repository can be read, for links to what is no page; set by the workflow that publishes. */
const repository = process.env.SITE_REPOSITORY
/** Other versions that are published beside this one, newest first: `0.2 0.1`. */
const others = (process.env.SITE_VERSIONS ?? '').split(' ').filter((other) => other !== '')
const home = process.env.SITE_HOME ?? '/'

export default defineConfig({
  title: 'Sluicegate',
  description: 'An exact rate limiter for Node.js: in the process, over Redis, or as a service',
  lang: 'en',
  base: process.env.SITE_BASE ?? '/',
  srcDir: root,
  outDir: `${root}.cache/site`,
  cacheDir: `${root}.cache/vitepress`,
  srcExclude: ['{packages,tools,bench,lab,packed,coverage,.cache,.github}/**', 'site/node_modules/**', 'site/README.md', 'README.md'],
  rewrites: (file) => pageOf(file) ?? file,
  cleanUrls: true,
  router: { prefetchLinks: false },
  head: [['link', { rel: 'icon', type: 'image/svg+xml', href: `${process.env.SITE_BASE ?? '/'}icon.svg` }]],
  markdown: {
    anchor: { slugify: anchorOf },
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
    image: { lazyLoading: true },
    languageAlias: { console: 'shellsession', conf: 'nginx' },
    config: (markdown) => markdown.core.ruler.push('links of the repository', linksOfRepository(root, repository)),
  },
  vite: {
    publicDir: fileURLToPath(new URL('../public', import.meta.url)),
    server: { fs: { allow: [root] } },
    build: { chunkSizeWarningLimit: 1000 },
    resolve: { alias: { sluicegate: `${root}packages/sluicegate/dist/index.js`, '@docs': `${root}docs` } },
  },
  themeConfig: {
    logo: '/icon.svg',
    search: { provider: 'local', options: { detailedView: true } },
    nav: [
      { text: 'Quick start', link: '/quick-start' },
      { text: 'Documentation', link: '/documentation', activeMatch: '^/(documentation|guide|redis|service)' },
      { text: 'Playground', link: '/playground' },
      { text: 'API', link: '/api/', activeMatch: '^/api/' },
      {
        text: version,
        items: [
          { text: 'Changes', link: '/changelog' },
          ...others.map((other) => ({ text: other, link: `${home}v${other}/`, target: '_self' })),
        ],
      },
    ],
    sidebar: sidebar(root),
    outline: [2, 3],
    ...(repository === undefined ? {} : { socialLinks: [{ icon: 'github', link: repository.replace(/\/blob\/.*$/, '') }] }),
    footer: { message: 'MIT licence' },
  },
})
