/** Reads the project's documents for tests. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Paths of all pages, from the repository's root. */
export function pages(): string[] {
  const below = (folder: string) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter(name => name.endsWith('.md'))
      .map(name => join(folder, name))
      .sort()
  return ['README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md', ...below('docs'), ...below('examples')]
}

export function read(page: string): string {
  return readFileSync(page, 'utf8')
}

/** Commands of a page's blocks with that mark, in order. */
export function blocks(mark: string, page = 'README.md', language = 'sh'): string[] {
  const pattern = new RegExp(`<!-- ${mark} -->\\n+\`\`\`${language}\\n(.*?)\`\`\``, 'gs')
  const found = [...read(page).matchAll(pattern)].map(match => match[1].trim())
  assert.notEqual(found.length, 0, `${page} has no block marked ${mark}`)
  return found
}

/** A page without its fenced blocks. */
export function prose(page: string): string {
  return read(page).replace(/^ *```.*?^ *```/gms, '')
}

/** Every `admb …` command of a page: lines of its shell blocks, and inline code. */
export function commandLines(page: string): string[] {
  const shell = [...read(page).matchAll(/^ *```sh\n(.*?)```/gms)].map(match => match[1].replace(/\\\n\s*/g, ' '))
  const inline = [...prose(page).matchAll(/`([^`]+)`/g)].map(match => match[1].replace(/\s+/g, ' '))
  const lines = [...shell.flatMap(text => text.split('\n')), ...inline]
  return lines.flatMap(line => [...line.matchAll(/(?:^|[\s(])admb ([a-z][^|>&;)]*)/g)].map(match => match[1].trim()))
}
