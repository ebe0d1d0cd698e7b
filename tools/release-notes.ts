/**
 * The section of a version in a changelog, as the text of its release.
 *
 * @throws when there is none, or it is empty.
 */
export function releaseNotes(changelog: string, version: string): string {
  const sections = changelog.split(/^## /m).slice(1)
  const section = sections.find((each) => each.startsWith(`[${version}]`))
  if (section === undefined) throw new Error(`CHANGELOG.md has no section "## [${version}]": rename Unreleased to it, with the date`)
  const notes = section.replace(/^.*\n/, '').trim()
  if (notes === '') throw new Error(`CHANGELOG.md says nothing below "## [${version}]"`)
  return `${notes}\n`
}
