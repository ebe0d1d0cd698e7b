import ts from 'typescript'
import { importsOf } from './imports-of.js'

/** A declaration file of an ES module as one of CommonJS: what it imports beside it is CommonJS, too. */
export function commonJsDeclaration(file: string, text: string): string {
  const own = new Set(importsOf(file, text).flatMap(({ specifier }) => (/^\..*\.js$/.test(specifier) ? [specifier] : [])))
  return text.replace(/(['"])(\.[^'"\n]*\.js)\1/g, (whole, quote: string, specifier: string) =>
    own.has(specifier) ? `${quote}${specifier.replace(/\.js$/, '.cjs')}${quote}` : whole,
  )
}

/**
 * The declaration of a module that is a function itself, its default export, and has all that it exports beside it.
 *
 * @param text of the ES module, which has `export { ... } from` alone.
 * @param names where its CommonJS declaration stands.
 */
export function callableDeclaration(file: string, text: string, names: string): string {
  const exported = exportedNames(file, text).filter(({ name }) => name !== 'default')
  const list = exported.map(({ name, typeOnly }) => `${typeOnly ? 'type ' : ''}${name}`).join(', ')
  return `import names, { ${list} } from '${names}'
declare function required(...options: Parameters<typeof names>): ReturnType<typeof names>
declare namespace required {
  export { ${list}, required as default }
}
export = required
`
}

/** A name that a module exports; of a type alone nothing is there at run time. */
interface Exported {
  readonly name: string
  readonly typeOnly: boolean
}

function exportedNames(file: string, text: string): Exported[] {
  const { statements } = ts.createSourceFile(file, text, ts.ScriptTarget.Latest)
  return statements.flatMap((statement) => {
    if (!ts.isExportDeclaration(statement) || statement.exportClause === undefined || !ts.isNamedExports(statement.exportClause)) {
      throw new Error(`${file}: exports of a module with a CommonJS form of its own have to be named, and come from elsewhere`)
    }
    const { elements } = statement.exportClause
    return elements.map(({ name, isTypeOnly }) => ({ name: name.text, typeOnly: isTypeOnly || statement.isTypeOnly }))
  })
}
