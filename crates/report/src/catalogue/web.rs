//! The words that only the pages of `goodput ui` say, by their keys. A report
//! does not carry them.

use measure::metric::Text;

const fn both(en: &'static str, zh: &'static str) -> Text {
    Text { en, zh }
}

/// Every key of the web page beyond those of a report.
pub const WEB: &[(&str, Text)] = &[
    ("nav_runs", both("Runs", "测试列表")),
    (
        "web_footer",
        both(
            "goodput {version}. This page talks to the program that serves it and to nobody else.",
            "goodput {version}。本页只与提供它的程序通信，不访问任何其他地址。",
        ),
    ),
    ("server_gone", both("The server does not answer.", "服务器没有响应。")),
    (
        "server_gone_hint",
        both(
            "Is goodput ui still running? Start it again and load the page anew.",
            "goodput ui 还在运行吗？请重新启动它并刷新页面。",
        ),
    ),
    ("loading", both("Loading…", "正在加载……")),
    ("try_again", both("Try again", "重试")),
    // The list of runs.
    ("runs_title", both("Runs", "测试列表")),
    (
        "runs_none",
        both(
            "There is no run in this folder yet; goodput bench makes one.",
            "此文件夹中还没有测试；用 goodput bench 生成。",
        ),
    ),
    (
        "runs_filter",
        both("Filter (id, model, target, tag, note)", "筛选（ID、模型、目标、标签、备注）"),
    ),
    ("runs_shown", both("{shown} of {of} runs", "显示 {shown} / {of} 次测试")),
    (
        "runs_more",
        both(
            "The folder holds {of} runs; the newest {shown} are listed.",
            "文件夹中共有 {of} 次测试，只列出最新的 {shown} 次。",
        ),
    ),
    ("runs_newest", both("Newest first", "最新在前")),
    ("runs_oldest", both("Oldest first", "最早在前")),
    ("runs_reload", both("Read again", "重新读取")),
    ("runs_overlay", both("Show {n} over each other", "叠加显示 {n} 次测试")),
    (
        "runs_overlay_hint",
        both(
            "Choose 2 to {most} runs to show them over each other.",
            "选择 2 到 {most} 次测试可叠加显示。",
        ),
    ),
    ("runs_clear", both("Choose none", "取消选择")),
    ("runs_pick", both("Choose {run}", "选择 {run}")),
    ("model_unknown", both("model not named", "模型未知")),
    ("simulated_short", both("simulated", "模拟")),
    ("verdict", both("verdict", "判定")),
    ("state_writing", both("Not finished: it is being written.", "尚未结束：正在写入。")),
    (
        "state_cut_off",
        both(
            "Not finished: it was cut off, or nothing came for a minute.",
            "没有结束：测试被中断，或一分钟内没有新数据。",
        ),
    ),
    ("state_unreadable", both("It cannot be read:", "无法读取：")),
    // What people say about a run.
    ("tags", both("Tags", "标签")),
    ("tags_label", both("Tags, with commas between them", "标签，用逗号分隔")),
    ("note_label", both("Note", "备注")),
    ("edit", both("Tags and note", "标签和备注")),
    ("edit_of", both("Tags and note of {run}", "{run} 的标签和备注")),
    ("save", both("Save", "保存")),
    ("cancel", both("Cancel", "取消")),
    ("trash", both("To the trash", "移到回收站")),
    ("trash_of", both("Move {run} to the trash", "把 {run} 移到回收站")),
    (
        "trash_sure",
        both(
            "Move {run} to the trash? It stays on the disk, in the folder .trash beside the runs.",
            "把 {run} 移到回收站？数据仍在磁盘上，位于测试旁边的 .trash 文件夹。",
        ),
    ),
    ("trash_yes", both("Move it", "移动")),
    ("trash_no", both("Keep it", "保留")),
    // One run, and several.
    ("back_to_runs", both("All runs", "全部测试")),
    ("to_playground", both("Try its requests in the playground", "在实验场中使用它的请求")),
    ("overlay_title", both("{n} runs over each other", "{n} 次测试叠加")),
    (
        "overlay_count",
        both(
            "From 2 to {most} runs are shown over each other; choose them in the list.",
            "叠加显示需要 2 到 {most} 次测试，请在列表中选择。",
        ),
    ),
    ("path_unknown", both("There is nothing at this address.", "此地址没有内容。")),
    ("play_run", both("Requests of a run", "某次测试的请求")),
    ("play_run_none", both("none", "无")),
    (
        "play_run_ready",
        both(
            "{run} is here: its button stands among the examples.",
            "{run} 已载入：示例数据中有它的按钮。",
        ),
    ),
];
