import { readFileSync } from 'node:fs'
import type { Page } from 'playwright-core'
import { pathThere } from '../generator.js'

interface Finding {
  readonly id: string
  readonly impact: string | null
  readonly nodes: readonly { readonly target: readonly string[]; readonly failureSummary?: string }[]
}

/** What axe-core finds on a page that is serious or worse, each with its first place. */
export async function seriousFindings(page: Page): Promise<string[]> {
  await page.addScriptTag({ content: readFileSync(pathThere('axe-core/axe.min.js'), 'utf8') })
  const violations = (await page.evaluate(
    'axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) => violations)',
  )) as Finding[]
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes.length} times, first ${nodes[0]?.target.join(' ')}: ${nodes[0]?.failureSummary ?? ''}`)
}
