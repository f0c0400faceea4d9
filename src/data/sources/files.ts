/** The files that an input names: one file, those of a directory, or those that match a pattern. */
import { readdir, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { MissingInputError } from '../errors.js'
import { isNamedAsData } from '../formats/formats.js'

/** Names that log rotation gives: `log.1`, `log-20260131.gz`. */
const ROTATED = /^[.-]\d[\d.:T_-]*(\.(gz|zst))?$/

/** A file with its time of modification. */
interface Dated {
  readonly path: string
  readonly modified: number
  readonly inode: number
}

/** Whether the input may stand for several files. */
export async function isFileSet(data: string): Promise<boolean> {
  const found = await stat(data).catch(() => undefined)
  return found === undefined ? isPattern(data) : found.isDirectory()
}

/**
 * The files of a directory, or those that match a pattern with `*`, `?`, `**` and `{a,b}`, in the order of their names, but each log
 * after the files that rotation has made of it. Hidden files are left out.
 * @throws MissingInputError if there are none
 */
export async function filesOf(data: string): Promise<string[]> {
  const found = await stat(data).catch(() => undefined)
  const files = found?.isDirectory() ? await filesIn(data) : await matching(data)
  if (files.length > 0) return (await Promise.all(logsOf(files).map(log => withRotated(log, files)))).flat()
  const what =
    found === undefined ? 'no file matches: check the pattern' : 'is a directory without files: check the path'
  throw new MissingInputError(`${data}: ${what}`)
}

/**
 * The files without those that rotation has made of another one.
 * @param current a log that counts as one of the files
 */
export function logsOf(files: readonly string[], current?: string): string[] {
  const known = new Set(current === undefined ? files : [...files, current])
  return files.filter(file => {
    const starts = [...file.matchAll(/[.-](?=\d)/g)].map(({ index }) => index)
    return !starts.some(start => known.has(file.slice(0, start)) && ROTATED.test(file.slice(start)))
  })
}

/** The files of a set that rotation has made of a log, oldest first, and the log. */
export async function withRotated(log: string, files: readonly string[]): Promise<string[]> {
  const rotated = (await rotatedFiles(log)).map(({ path }) => path)
  return [...rotated.filter(file => files.includes(file)), log]
}

function isPattern(data: string): boolean {
  return /[*?{]/.test(data)
}

/** Files of a directory that are not read, because others are named as data. */
export async function skippedIn(data: string): Promise<string[]> {
  if (!(await stat(data).catch(() => undefined))?.isDirectory()) return []
  const read = new Set(await filesIn(data))
  return (await visibleIn(data)).filter(file => !read.has(file))
}

/** The files of a directory: if some are named as data, only these and what rotation has made of them. */
async function filesIn(directory: string): Promise<string[]> {
  const files = await visibleIn(directory)
  const named = files.filter(isNamedAsData)
  if (named.length === 0) return files
  return files.filter(file => named.some(log => file === log || isRotated(file, log)))
}

function isRotated(file: string, log: string): boolean {
  return file.startsWith(log) && ROTATED.test(file.slice(log.length))
}

async function visibleIn(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { withFileTypes: true })
  const files = entries.filter(entry => !entry.isDirectory() && !entry.name.startsWith('.'))
  return files.map(({ name }) => join(directory, name)).sort()
}

async function matching(pattern: string): Promise<string[]> {
  const fixed = pattern.slice(0, pattern.search(/[*?{]/))
  const root = fixed.includes('/') ? fixed.slice(0, fixed.lastIndexOf('/') + 1) : ''
  const expected = patternOf(pattern.slice(root.length))
  const isDeep = pattern.slice(root.length).includes('/') || pattern.includes('**')
  const entries = await readdir(root === '' ? '.' : root, { withFileTypes: true, recursive: isDeep }).catch(() => [])
  const base = root === '' ? '.' : root
  const names = entries
    .filter(entry => !entry.isDirectory() && !entry.name.startsWith('.'))
    .map(({ parentPath, name }) => join(parentPath, name).slice(join(base).length))
    .map(name => (root === '' ? name : name.replace(/^\//, '')))
  return names
    .filter(name => expected.test(name))
    .map(name => root + name)
    .sort()
}

function patternOf(pattern: string): RegExp {
  let depth = 0
  const source = pattern.replace(/\*\*\/|\*\*|[\s\S]/g, token => {
    if (token === '**/') return '(?:.*/)?'
    if (token === '**') return '.*'
    if (token === '*') return '[^/]*'
    if (token === '?') return '[^/]'
    if (token === '{') {
      depth++
      return '(?:'
    }
    if (token === '}' && depth > 0) {
      depth--
      return ')'
    }
    if (token === ',' && depth > 0) return '|'
    return token.replace(/[.+^$()|[\]\\}]/, '\\$&')
  })
  return new RegExp(`^${source}$`)
}

/** Files beside a log that rotation may have made of it, oldest first. */
export async function rotatedFiles(path: string): Promise<Dated[]> {
  const base = basename(path)
  const names = await readdir(dirname(path)).catch(() => [])
  const files: Dated[] = []
  for (const name of names) {
    if (!name.startsWith(base) || !ROTATED.test(name.slice(base.length))) continue
    const file = join(dirname(path), name)
    const found = await stat(file).catch(() => undefined)
    if (found?.isFile()) files.push({ path: file, modified: found.mtimeMs, inode: found.ino })
  }
  // Clocks of file systems are coarse. With numbers, a larger one is older, with dates a smaller one.
  const number = ({ path: file }: Dated) =>
    Number(/^\.(\d{1,4})(\.(gz|zst))?$/.exec(basename(file).slice(base.length))?.[1])
  return files.sort((a, b) => a.modified - b.modified || number(b) - number(a) || (a.path < b.path ? -1 : 1))
}
