/** What the declarations of the package's entry points export, with their docstrings, by the compiler API of TypeScript 5.9. */
import { createRequire } from 'node:module'
import { resolve } from 'node:path'
import type * as TypeScript from '../../scripts/reference/node_modules/typescript/lib/typescript.js'

/** The project's own TypeScript has no compiler API. */
const ts = createRequire(resolve('scripts/reference/package.json'))('typescript') as typeof TypeScript

const ENTRIES = { admb: 'dist/src/index.d.ts', 'admb/testing': 'dist/sim/testing/index.d.ts' }

export interface Tag {
  readonly name: string
  readonly text: string
}

export interface Documented {
  /** Such as `admb: Peer.start`. */
  readonly name: string
  readonly text: string
  readonly tags: readonly Tag[]
}

export interface Exported extends Documented {
  readonly kind: 'function' | 'class' | 'interface' | 'type' | 'value'
  /** Public methods and static functions of a class, and its constructor if it has parameters. */
  readonly methods: readonly Documented[]
  /** Optional properties of an interface or object type. */
  readonly optional: readonly Documented[]
}

/** All exported symbols of both entry points. */
export function exportedSymbols(): Exported[] {
  const options = { module: ts.ModuleKind.NodeNext, target: ts.ScriptTarget.ES2022, strict: true, skipLibCheck: true }
  const program = ts.createProgram(Object.values(ENTRIES), options)
  const checker = program.getTypeChecker()

  const documented = (name: string, symbol: TypeScript.Symbol): Documented => ({
    name,
    text: ts.displayPartsToString(symbol.getDocumentationComment(checker)),
    tags: symbol.getJsDocTags(checker).map(({ name, text }) => ({ name, text: ts.displayPartsToString(text) }))
  })

  return Object.entries(ENTRIES).flatMap(([entry, file]) => {
    const module = checker.getSymbolAtLocation(program.getSourceFile(file) as TypeScript.SourceFile)
    return checker.getExportsOfModule(module as TypeScript.Symbol).map(exported => {
      const isAlias = (exported.flags & ts.SymbolFlags.Alias) !== 0
      const symbol = isAlias ? checker.getAliasedSymbol(exported) : exported
      const name = `${entry}: ${exported.name}`
      const member = (child: TypeScript.Symbol) => documented(`${name}.${child.name}`, child)
      const has = (flags: number) => (symbol.flags & flags) !== 0
      const kind = has(ts.SymbolFlags.Function)
        ? 'function'
        : has(ts.SymbolFlags.Class)
          ? 'class'
          : has(ts.SymbolFlags.Interface)
            ? 'interface'
            : has(ts.SymbolFlags.TypeAlias)
              ? 'type'
              : 'value'
      const isPublic = (child: TypeScript.Symbol) =>
        !child.name.startsWith('#') &&
        !child.name.startsWith('__') &&
        !child.declarations?.some(
          declaration =>
            (ts.getCombinedModifierFlags(declaration) & (ts.ModifierFlags.Private | ts.ModifierFlags.Protected)) !== 0
        )
      const children = [...(symbol.members?.values() ?? []), ...(symbol.exports?.values() ?? [])].filter(isPublic)
      const methods = kind === 'class' ? children.filter(child => (child.flags & ts.SymbolFlags.Method) !== 0) : []
      const type = kind === 'interface' || kind === 'type' ? checker.getDeclaredTypeOfSymbol(symbol) : undefined
      const properties = type?.isUnion() === false || type?.isClassOrInterface() ? type.getProperties() : []
      const optional = properties.filter(child => (child.flags & ts.SymbolFlags.Optional) !== 0)
      return { ...documented(name, symbol), kind, methods: methods.map(member), optional: optional.map(member) }
    })
  })
}
