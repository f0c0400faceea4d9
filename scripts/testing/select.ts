/** Selects the test files that a pattern or a change concerns. */
import { readdirSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'

/** Paths of source files with their text. */
export type Sources = ReadonlyMap<string, string>

export interface Selection {
  /** Test files (`test/….test.ts`), sorted. */
  readonly files: readonly string[]
  /** For mocha's `--grep`. Absent if whole files run. */
  readonly grep?: string
}

/** Test suites that run without external data or a browser. */
export const SUITES = ['test/unit', 'test/property', 'test/integration']

/** Reads all TypeScript sources below the folders. */
export function readSources(folders: readonly string[], root = '.'): Sources {
  const paths = folders.flatMap(folder =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter(file => file.endsWith('.ts') && !file.includes('node_modules'))
      .map(file => posix.join(folder, file.replaceAll('\\', '/')))
  )
  return new Map(paths.map(path => [path, readFileSync(join(root, path), 'utf8')]))
}

/**
 * Test files whose path contains the pattern; else those with a title that contains it, limited to such titles; else those whose
 * source contains it. Case does not matter.
 */
export function selectByPattern(pattern: string, sources: Sources): Selection {
  const escaped = pattern.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')
  const tests = [...sources].filter(([path]) => isTest(path))
  const filesWith = (matches: (path: string, source: string) => boolean) =>
    tests.filter(([path, source]) => matches(path, source)).map(([path]) => path)

  const byPath = filesWith(path => path.toLowerCase().includes(pattern.toLowerCase()))
  if (byPath.length > 0) return { files: byPath.sort() }
  const title = new RegExp(`\\b(?:it|describe)(?:\\.\\w+)?\\(\\s*(['"\`])(?:(?!\\1).)*${escaped}`, 'i')
  const byTitle = filesWith((_, source) => title.test(source))
  if (byTitle.length > 0) return { files: byTitle.sort(), grep: `/${escaped}/i` }
  const text = new RegExp(escaped, 'i')
  return { files: filesWith((_, source) => text.test(source)).sort() }
}

/** Test files that import a changed file, directly or indirectly, or are one. */
export function selectByChange(changed: Iterable<string>, sources: Sources): Selection {
  const importers = new Map<string, string[]>()
  for (const [path, source] of sources) {
    for (const [, target] of source.matchAll(/\b(?:from|import)\s*\(?\s*'(\.[^']+)\.js'/g)) {
      const imported = `${posix.join(posix.dirname(path), target)}.ts`
      importers.set(imported, [...(importers.get(imported) ?? []), path])
    }
  }
  const found = new Set(changed)
  for (const file of found) for (const importer of importers.get(file) ?? []) found.add(importer)
  return { files: [...found].filter(file => isTest(file) && sources.has(file)).sort() }
}

function isTest(path: string): boolean {
  return path.endsWith('.test.ts') && SUITES.some(suite => path.startsWith(`${suite}/`))
}
