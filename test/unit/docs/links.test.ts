/** Links in the documents point to existing pages, files and headings. */
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, normalize } from 'node:path'
import { anchor, pages, prose, read } from '../../support/documents.js'

function anchors(page: string): Set<string> {
  return new Set([...prose(page).matchAll(/^#+ +(.+?) *$/gm)].map(match => anchor(match[1])))
}

/** The error in a link of a page, if any. */
function fault(page: string, link: string): string | undefined {
  const [path, fragment] = link.split('#')
  const target = path === '' ? page : normalize(`${dirname(page)}/${path}`)
  if (!existsSync(target)) return `${page}: ${link} points to nothing`
  if (fragment === undefined || !target.endsWith('.md') || anchors(target).has(fragment)) return undefined
  return `${page}: ${link} is not a heading of ${target}`
}

describe('the documents', () => {
  it('link to files and headings that exist', () => {
    const links = pages().flatMap(page =>
      [...prose(page).matchAll(/\]\(([^)\s]+)\)/g)].map(match => [page, match[1]] as const)
    )
    const relative = links.filter(([, link]) => !/^[a-z]+:/.test(link))
    assert.ok(relative.length > 50, `${relative.length} links`)
    assert.deepEqual(
      relative.map(([page, link]) => fault(page, link)).filter(found => found !== undefined),
      []
    )
  })

  it('are all linked from their index', () => {
    const [index] = prose('docs/README.md').split('## Moved pages')
    const listed = pages().filter(page => page.startsWith('docs/') && page !== 'docs/README.md')
    const missing = listed.filter(page => !index.includes(`](${page.slice('docs/'.length)}) |`))
    assert.deepEqual(missing, [])
  })

  it('begin with a README of one screen', () => {
    const lines = read('README.md').trimEnd().split('\n')
    assert.ok(lines.length <= 60, `${lines.length} lines: move what is not for a first look to docs/`)
  })

  it('list every package with its purpose', () => {
    const { dependencies, devDependencies, optionalDependencies, peerDependencies } = JSON.parse(
      readFileSync('package.json', 'utf8')
    ) as Record<string, Record<string, string>>
    const packages = Object.keys({ ...dependencies, ...devDependencies, ...optionalDependencies, ...peerDependencies })
    const table = read('docs/reference/packages.md')
    assert.deepEqual(
      packages.filter(name => !table.includes(`\`${name}\``)),
      []
    )
  })

  it('contain pictures of at most 200 kB', () => {
    for (const file of readdirSync('docs/images')) assert.ok(statSync(`docs/images/${file}`).size < 200_000, file)
  })
})
