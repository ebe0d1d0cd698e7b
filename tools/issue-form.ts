import { parse } from 'yaml'

// What GitHub accepts as an issue form: https://docs.github.com/communities/using-templates-to-encourage-useful-issues-and-pull-requests
// ("Syntax for issue forms" and "Syntax for GitHub's form schema"). GitHub hides a form with a fault, without a message.

type Fields = Readonly<Record<string, unknown>>

interface Shape {
  readonly required: readonly string[]
  readonly optional: readonly string[]
}

const FORM: Shape = { required: ['name', 'description', 'body'], optional: ['title', 'labels', 'assignees', 'projects', 'type'] }
const ATTRIBUTES: Readonly<Record<string, Shape>> = {
  markdown: { required: ['value'], optional: [] },
  input: { required: ['label'], optional: ['description', 'placeholder', 'value'] },
  textarea: { required: ['label'], optional: ['description', 'placeholder', 'value', 'render'] },
  dropdown: { required: ['label', 'options'], optional: ['description', 'multiple', 'default'] },
  checkboxes: { required: ['label', 'options'], optional: ['description'] },
}

/** The faults for which GitHub would refuse an issue form. */
export function issueFormFaults(file: string, text: string): string[] {
  const form = parse(text) as Fields
  const faults = shapeFaults('the form', form, FORM)
  const body = Array.isArray(form?.body) ? (form.body as Fields[]) : []
  if (!body.some(({ type }) => type !== 'markdown')) faults.push('the body asks for nothing')
  const seen = new Set<unknown>()
  for (const [i, element] of body.entries()) {
    faults.push(...elementFaults(`element ${i + 1}`, element))
    for (const [what, value] of [
      ['id', element.id],
      ['label', (element.attributes as Fields | undefined)?.label],
    ] as const) {
      if (value !== undefined && seen.has(`${what} ${value}`)) faults.push(`element ${i + 1}: the ${what} "${value}" is there already`)
      seen.add(`${what} ${value}`)
    }
  }
  return faults.map((fault) => `${file}: ${fault}`)
}

function elementFaults(where: string, element: Fields): string[] {
  const {
    type,
    id,
    attributes = {},
    validations = {},
  } = element as { type: string; id?: unknown; attributes?: Fields; validations?: Fields }
  const shape = ATTRIBUTES[type]
  if (shape === undefined) return [`${where}: unknown type "${type}"; there are ${Object.keys(ATTRIBUTES).join(', ')}`]
  const faults = [
    ...shapeFaults(where, element, { required: ['type', 'attributes'], optional: ['id', 'validations'] }),
    ...shapeFaults(`attributes of ${where}`, attributes, shape),
    ...shapeFaults(`validations of ${where}`, validations, { required: [], optional: ['required'] }),
  ]
  if (id !== undefined && !/^[\w-]+$/.test(String(id))) faults.push(`${where}: the id "${id}" is not made of letters, digits, - and _`)
  if (validations.required !== undefined && typeof validations.required !== 'boolean') faults.push(`${where}: required is true or false`)
  const { options } = attributes
  if (options !== undefined && (!Array.isArray(options) || options.length === 0)) faults.push(`${where}: options are a list`)
  if (Array.isArray(options) && new Set(options.map((option) => JSON.stringify(option))).size < options.length)
    faults.push(`${where}: an option is there twice`)
  return faults
}

function shapeFaults(where: string, fields: Fields, { required, optional }: Shape): string[] {
  if (typeof fields !== 'object' || fields === null) return [`${where} is no mapping`]
  const missing = required.filter((name) => fields[name] === undefined || fields[name] === '')
  const unknown = Object.keys(fields).filter((name) => !required.includes(name) && !optional.includes(name))
  return [...missing.map((name) => `${where} has no ${name}`), ...unknown.map((name) => `${where} has an unknown field "${name}"`)]
}
