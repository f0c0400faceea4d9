/** Licences of packages that a build contains. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const modules = fileURLToPath(new URL('../../node_modules', import.meta.url))

interface Manifest {
  readonly version: string
  readonly license?: string
  readonly dependencies?: Readonly<Record<string, string>>
}

export function manifest(name: string): Manifest {
  return JSON.parse(readFileSync(join(modules, name, 'package.json'), 'utf8')) as Manifest
}

/** The licence texts of the packages and of all that they depend on. */
export function licences(names: readonly string[]): string {
  const all = new Set<string>()
  const add = (name: string) => {
    if (all.has(name) || !existsSync(join(modules, name))) return
    all.add(name)
    for (const dependency of Object.keys(manifest(name).dependencies ?? {})) add(dependency)
  }
  names.forEach(add)
  const texts = [...all].sort().map(name => {
    const { version, license = '' } = manifest(name)
    const file = readdirSync(join(modules, name)).find(file => /^licen[cs]e/i.test(file))
    const text = file === undefined ? `Licence: ${license}` : readFileSync(join(modules, name, file), 'utf8').trim()
    return `${name} ${version}\n\n${text}\n`
  })
  return texts.join(`\n${'-'.repeat(80)}\n\n`)
}
