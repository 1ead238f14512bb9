import { describe, expect, test } from "bun:test";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { Workshop } from "./helper.ts";

const shop = new Workshop();
const skills = shop.ctx.skillsPath;
function put(path: string, text: string): void {
  mkdirSync(dirname(join(skills, path)), { recursive: true });
  writeFileSync(join(skills, path), text);
}

describe("skill_load", () => {
  test("says that there are none", async () => {
    expect(await shop.no("skill_load", { name: "review" })).toContain("there are no skills");
  });

  test("shows a skill without its front matter, and the files that belong to it", async () => {
    put(
      "review/SKILL.md",
      "---\nname: code-review\ndescription: How to review\n---\n\nRead scripts/run.sh.\n",
    );
    put("review/scripts/run.sh", "");
    put("review/references/style.md", "");
    put("review/.git/config", "");
    symlinkSync("/etc", join(skills, "review/etc"));
    expect(await shop.ok("skill_load", { name: "code-review" })).toBe(
      `# Skill code-review (${skills}/review/SKILL.md)\n\nRead scripts/run.sh.\n\n` +
        `Files of this skill, in ${skills}/review:\n- references/style.md\n- scripts/run.sh`,
    );
    expect(await shop.ok("skill_load", { name: "Code Review" })).toContain("Read scripts/run.sh.");
  });

  test("shows a single file as well", async () => {
    put("deploy.md", "---\ndescription: How to deploy\n---\nPush the tag.\n");
    expect(await shop.ok("skill_load", { name: "deploy" })).toBe(
      `# Skill deploy (${skills}/deploy.md)\n\nPush the tag.`,
    );
  });

  test("lists what there is when no name or an unknown one is given; a path is no name", async () => {
    const index = "- code-review: How to review\n- deploy: How to deploy";
    expect(await shop.ok("skill_load", {})).toBe(index);
    expect(await shop.no("skill_load", { name: "../deploy" })).toStartWith(
      `[stderr]\nthere is no skill "../deploy". There are:\n${index}\n[exit 1`,
    );
  });

  test("cuts a long one at a line and says where the rest is", async () => {
    put("long.md", "line of a long skill\n".repeat(1000));
    const text = await shop.ok("skill_load", { name: "long" });
    expect(text).toMatch(
      /line of a long skill\n\[cut here, at \d+ of 20999 bytes; file_read .*\/long\.md shows/,
    );
    expect(text).not.toContain("left out");
  });
});
